#include <algorithm>
#include <vector>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/score_tile.hpp"
#include "cpu/kernels/tensor_io.hpp"
#include "sparse/kernels/block_flash2.hpp"
#include "sparse/kernels/block_tiles.hpp"
#include "sparse/kernels/packed_rows.hpp"
#include "sparse/kernels/tasks.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::RowBlock;

// One thread's tiles.
struct Tiles {
  float *O, *dLSE, *dQ, *dK, *dV, *P, *slope, *dS;

  static std::int64_t floats(const attest_problem& problem) {
    return kTile * (2 * problem.head_dim_qk + 2 * problem.head_dim_v + 1 + 3 * kTile);
  }
  Tiles(const attest_problem& problem, float* first) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Pieces pieces(first);
    O = pieces.take(kTile * dv), dLSE = pieces.take(kTile), dQ = pieces.take(kTile * d);
    dK = pieces.take(kTile * d), dV = pieces.take(kTile * dv);
    P = pieces.take(kTile * kTile), slope = pieces.take(kTile * kTile);
    dS = pieces.take(kTile * kTile);
    if (problem.softcap <= 0) slope = nullptr;
  }
};

class Backward {
 public:
  explicit Backward(const attest_backward_args& args)
      : args_(args), problem_(*args.problem), tiles_(problem_) {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t keys = stored_keys(problem_), kv_heads = problem_.num_heads_kv;
    const std::int64_t queries = stored_queries(problem_), heads = problem_.num_heads_q;
    Pieces pieces(args.workspace);
    K_ = pieces.rows(kv_heads, keys, d), Kt_ = pieces.rows(kv_heads, keys, d);
    Vt_ = pieces.rows(kv_heads, keys, dv);
    Q_ = pieces.rows(heads, queries, d), dO_ = pieces.rows(heads, queries, dv);
    LSE_ = pieces.rows(heads, queries, 1), delta_ = pieces.rows(heads, queries, 1);
    threads_ = pieces.rest();
  }

  void run() const {
    const auto on_threads = [&](const std::vector<Task>& tasks, auto step) {
      run_longest_first(tasks, problem_.num_threads, [&](const Task& task, int thread) {
        (this->*step)(task, cpu::batch_of(problem_, task.batch),
                      Tiles(problem_, threads_ + thread * Tiles::floats(problem_)));
      });
    };
    const std::vector<Task> keys = tiles_.key_tasks();
    on_threads(keys, &Backward::pack_keys);
    on_threads(tiles_.query_tasks(), &Backward::query_pass);  // packs its queries for the next
    on_threads(keys, &Backward::key_pass);
  }

 private:
  void pack_keys(const Task& task, const Batch& batch, const Tiles&) const {
    const Rows keys = tiles_.keys().tile(task.part, batch.keys);
    const RowBlock rows{batch.tensor_batch, batch.k_begin + keys.first, keys.count, task.head};
    const std::int64_t at = first_key(problem_, batch) + keys.first;
    cpu::load_rows(*args_.K, rows, K_.at(task.head, at));
    cpu::load_transposed(*args_.K, rows, Kt_.at(task.head, at));
    cpu::load_transposed(*args_.V, rows, Vt_.at(task.head, at));
  }

  // dQ of one query tile: the key tiles of its list stream past.
  void query_pass(const Task& task, const Batch& batch, const Tiles& own) const {
    const std::int64_t d = problem_.head_dim_qk;
    const Rows queries = tiles_.queries().tile(task.part, batch.q_length);
    const RowBlock rows = pack_queries(task.head, batch, queries, own);
    std::fill(own.dQ, own.dQ + queries.count * d, 0.0f);
    tiles_.for_keys(batch, task.part, [&](Rows keys) {
      recompute(task.head, batch, queries, keys, own);
      cpu::multiply_add(own.dQ, d, {own.dS, keys.count, 1}, keys_at(K_, task.head, batch, keys), d,
                        queries.count, d, keys.count);
    });
    cpu::scale_row(own.dQ, queries.count * d, static_cast<float>(problem_.softmax_scale));
    cpu::store_rows(*args_.dQ, rows, own.dQ);
  }

  // dK and dV of one key tile: the query tiles of its list stream past, for all heads of the group.
  void key_pass(const Task& task, const Batch& batch, const Tiles& own) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const Rows stored = tiles_.keys().tile(task.part, batch.k_length);
    const Rows keys = tiles_.keys().tile(task.part, batch.keys);
    std::fill(own.dK, own.dK + stored.count * d, 0.0f);
    std::fill(own.dV, own.dV + stored.count * dv, 0.0f);
    const std::int64_t group = problem_.num_heads_q / problem_.num_heads_kv;
    for (std::int64_t head = task.head * group; head < (task.head + 1) * group; ++head) {
      tiles_.for_queries(batch, task.part, [&](Rows queries) {
        recompute(head, batch, queries, keys, own);
        cpu::multiply_add(own.dV, dv, {own.P, 1, keys.count}, queries_at(dO_, head, batch, queries),
                          dv, keys.count, dv, queries.count);
        cpu::multiply_add(own.dK, d, {own.dS, 1, keys.count}, queries_at(Q_, head, batch, queries),
                          d, keys.count, d, queries.count);
      });
    }
    cpu::scale_row(own.dK, keys.count * d, static_cast<float>(problem_.softmax_scale));
    const RowBlock rows{batch.tensor_batch, batch.k_begin + stored.first, stored.count, task.head};
    cpu::store_rows(*args_.dK, rows, own.dK);
    cpu::store_rows(*args_.dV, rows, own.dV);
  }

  RowBlock pack_queries(std::int64_t head, const Batch& batch, Rows queries,
                        const Tiles& own) const {
    const RowBlock rows{batch.tensor_batch, batch.q_begin + queries.first, queries.count, head};
    float* const dO = queries_at(dO_, head, batch, queries);
    cpu::load_rows(*args_.Q, rows, queries_at(Q_, head, batch, queries));
    cpu::load_rows(*args_.dO, rows, dO);
    cpu::load_rows(*args_.O, rows, own.O);
    cpu::load_scalars(*args_.LSE, rows, queries_at(LSE_, head, batch, queries));
    if (args_.dLSE != nullptr) cpu::load_scalars(*args_.dLSE, rows, own.dLSE);
    cpu::row_deltas(dO, own.O, args_.dLSE != nullptr ? own.dLSE : nullptr, queries.count,
                    problem_.head_dim_v, queries_at(delta_, head, batch, queries));
    return rows;
  }

  // P and dS of one tile.
  void recompute(std::int64_t head, const Batch& batch, Rows queries, Rows keys,
                 const Tiles& own) const {
    const std::int64_t dv = problem_.head_dim_v;
    cpu::score_tile(problem_, batch, {head, queries.first, queries.count, keys.first, keys.count},
                    queries_at(Q_, head, batch, queries), keys_at(Kt_, head, batch, keys), own.P,
                    own.slope);
    cpu::probabilities(queries_at(LSE_, head, batch, queries), queries.count, keys.count, own.P);
    std::fill(own.dS, own.dS + queries.count * keys.count, 0.0f);
    cpu::multiply_add(own.dS, keys.count, {queries_at(dO_, head, batch, queries), dv, 1},
                      keys_at(Vt_, head, batch, keys), keys.count, queries.count, keys.count, dv);
    cpu::score_gradients(own.P, own.slope, queries_at(delta_, head, batch, queries), queries.count,
                         keys.count, own.dS);
  }

  float* queries_at(const PackedRows& packed, std::int64_t head, const Batch& batch,
                    Rows queries) const {
    return packed.at(head, first_query(problem_, batch) + queries.first);
  }

  // Of the head that the query head reads.
  const float* keys_at(const PackedRows& packed, std::int64_t head, const Batch& batch,
                       Rows keys) const {
    const std::int64_t kv_head = head / (problem_.num_heads_q / problem_.num_heads_kv);
    return packed.at(kv_head, first_key(problem_, batch) + keys.first);
  }

  const attest_backward_args& args_;
  const attest_problem& problem_;
  BlockTiles tiles_;
  PackedRows K_{}, Kt_{}, Vt_{};  // transposed tile by tile
  PackedRows Q_{}, dO_{}, LSE_{}, delta_{};
  float* threads_ = nullptr;
};

}  // namespace

std::int64_t block_backward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem), 2 * d + dv) +
         PackedRows::floats(problem.num_heads_q, stored_queries(problem), d + dv + 2) +
         std::max(problem.num_threads, 1) * Tiles::floats(problem);
}

void block_backward(const attest_backward_args& args) { Backward(args).run(); }

}  // namespace attest::sparse
