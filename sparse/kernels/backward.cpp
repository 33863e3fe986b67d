#include "sparse/kernels/backward.hpp"

#include <algorithm>
#include <vector>

#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/lists/split_mask.hpp"
#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::RowBlock;

// One thread's tiles; of gathered rows the scores lie in their first row.
struct Tiles {
  float *O, *dLSE, *LSE, *delta, *dK, *dV, *P, *slope, *dS;

  static std::int64_t floats(const attest_problem& problem) {
    return kTile * (problem.head_dim_qk + 2 * problem.head_dim_v + 3 + 3 * kTile);
  }
  Tiles(const attest_problem& problem, float* first) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Pieces pieces(first);
    O = pieces.take(kTile * dv), dLSE = pieces.take(kTile), LSE = pieces.take(kTile);
    delta = pieces.take(kTile), dK = pieces.take(kTile * d);
    dV = pieces.take(kTile * dv), P = pieces.take(kTile * kTile);
    slope = pieces.take(kTile * kTile), dS = pieces.take(kTile * kTile);
    if (!cpu::has_slope(problem)) slope = nullptr;
  }
};
static_assert(kGathered <= kTile, "gathered rows are as many as a tile's");

class Backward {
 public:
  explicit Backward(const attest_backward_args& args)
      : args_(args), problem_(*args.problem), mask_(problem_, true) {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t keys = stored_keys(problem_), kv_heads = problem_.num_heads_kv;
    const std::int64_t queries = stored_queries(problem_), heads = problem_.num_heads_q;
    Pieces pieces(args.workspace);
    K_ = pieces.rows(kv_heads, keys, d), Kt_ = pieces.rows(kv_heads, keys, d);
    Vt_ = pieces.rows(kv_heads, keys, dv);
    if (mask_.has_singles()) V_ = pieces.rows(kv_heads, keys, dv);
    Q_ = pieces.rows(heads, queries, d), dO_ = pieces.rows(heads, queries, dv);
    dQ_ = pieces.rows(heads, queries, d);
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
    const std::vector<Task> keys = mask_.key_tasks(), queries = mask_.query_tasks();
    on_threads(keys, &Backward::pack_keys);
    if (is_one_pass_faster()) {
      on_threads(queries, &Backward::begin_queries);
      const std::vector<std::vector<Task>> of_heads = by_head(keys);
      run_longest_first(work_of(of_heads), problem_.num_threads, [&](const Task& head, int thread) {
        const Tiles own(problem_, threads_ + thread * Tiles::floats(problem_));
        for (const Task& task : of_heads[static_cast<std::size_t>(head.head)]) {
          gradients_of_keys(task, cpu::batch_of(problem_, task.batch), own, true);
        }
      });
      on_threads(queries, &Backward::finish_queries);
    } else {
      on_threads(queries, &Backward::query_pass);  // packs its queries for the next
      on_threads(keys, &Backward::key_pass);
    }
  }

 private:
  // One pass has five products of a tile and a task for each head of K, two have seven and a task
  // for each tile.
  bool is_one_pass_faster() const {
    const std::int64_t heads = problem_.batch * problem_.num_heads_kv,
                       threads = std::max(problem_.num_threads, 1);
    return (heads + threads - 1) / threads * threads * 5 <= heads * 7;
  }

  // The tasks of each head of K, in their order.
  std::vector<std::vector<Task>> by_head(const std::vector<Task>& keys) const {
    std::vector<std::vector<Task>> heads(
        static_cast<std::size_t>(problem_.batch * problem_.num_heads_kv));
    for (const Task& task : keys) {
      heads[static_cast<std::size_t>(task.batch * problem_.num_heads_kv + task.head)].push_back(
          task);
    }
    return heads;
  }

  // A task for each of them; its head is the place among them.
  static std::vector<Task> work_of(const std::vector<std::vector<Task>>& heads) {
    std::vector<Task> tasks;
    for (const std::vector<Task>& of_head : heads) {
      Task task{0, static_cast<std::int64_t>(tasks.size()), 0, {0, 0}, 0, false};
      for (const Task& one : of_head) task.work += one.work;
      tasks.push_back(task);
    }
    return tasks;
  }

  void pack_keys(const Task& task, const Batch& batch, const Tiles&) const {
    const Rows keys = existing(task.rows, batch);
    const RowBlock rows{batch.tensor_batch, batch.k_begin + keys.first, keys.count, task.head};
    const std::int64_t at = first_key(problem_, batch) + keys.first;
    cpu::load_rows(*args_.K, rows, K_.at(task.head, at));
    if (mask_.has_singles()) cpu::load_rows(*args_.V, rows, V_.at(task.head, at));
    if (task.is_single) return;
    cpu::load_transposed(*args_.K, rows, Kt_.at(task.head, at));
    cpu::load_transposed(*args_.V, rows, Vt_.at(task.head, at));
    for (std::int64_t r = 0; r < keys.count; ++r) {
      if (mask_.is_seen(batch, keys.first + r)) continue;
      clear_column(K_.at(task.head, at + r), 1, K_.columns);
      clear_column(Kt_.at(task.head, at) + r, keys.count, Kt_.columns);
      clear_column(Vt_.at(task.head, at) + r, keys.count, Vt_.columns);
    }
  }

  // dQ of some queries: the key tiles and the single keys of their lists stream past.
  void query_pass(const Task& task, const Batch& batch, const Tiles& own) const {
    const std::int64_t d = problem_.head_dim_qk, count = task.rows.count;
    begin_queries(task, batch, own);
    if (!task.is_single) {
      mask_.tiles().for_keys(batch, task.tile, [&](Rows keys) {
        recompute(task.head, batch, task.rows, keys, own);
        cpu::multiply_add(queries_at(dQ_, task.head, batch, task.rows), d, {own.dS, keys.count, 1},
                          keys_at(K_, task.head, batch, keys), d, count, d, keys.count);
      });
    }
    finish_queries(task, batch, own);
  }

  void begin_queries(const Task& task, const Batch& batch, const Tiles& own) const {
    pack_queries(task, batch, own);
    float* const dQ = queries_at(dQ_, task.head, batch, task.rows);
    std::fill(dQ, dQ + task.rows.count * problem_.head_dim_qk, 0.0f);
  }

  // Adds the single keys to dQ, and stores it.
  void finish_queries(const Task& task, const Batch& batch, const Tiles& own) const {
    const std::int64_t d = problem_.head_dim_qk, count = task.rows.count;
    float* const dQ = queries_at(dQ_, task.head, batch, task.rows);
    if (mask_.has_singles()) {
      for (std::int64_t r = 0; r < count; ++r) {
        add_single_keys(task.head, batch, task.rows.first + r, own, dQ + r * d);
      }
    }
    cpu::scale_row(dQ, count * d, static_cast<float>(problem_.softmax_scale));
    cpu::store_rows(*args_.dQ, rows_of(task, batch), dQ);
  }

  void key_pass(const Task& task, const Batch& batch, const Tiles& own) const {
    gradients_of_keys(task, batch, own, false);
  }

  // dK and dV of some keys: the query tiles and the single queries of their lists stream past, for
  // all heads of the group. Keys that do not exist have none. With dQ the tiles are added to it
  // too, in the order of query_pass, so that the bits are those of two passes.
  void gradients_of_keys(const Task& task, const Batch& batch, const Tiles& own,
                         bool with_dQ) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const Rows keys = existing(task.rows, batch);
    std::fill(own.dK, own.dK + task.rows.count * d, 0.0f);
    std::fill(own.dV, own.dV + task.rows.count * dv, 0.0f);
    const std::int64_t group = problem_.num_heads_q / problem_.num_heads_kv;
    for (std::int64_t head = task.head * group; head < (task.head + 1) * group; ++head) {
      if (!task.is_single) {
        mask_.tiles().for_queries(batch, task.tile, [&](Rows queries) {
          recompute(head, batch, queries, keys, own);
          cpu::multiply_add(own.dV, dv, {own.P, 1, keys.count},
                            queries_at(dO_, head, batch, queries), dv, keys.count, dv,
                            queries.count);
          cpu::multiply_add(own.dK, d, {own.dS, 1, keys.count},
                            queries_at(Q_, head, batch, queries), d, keys.count, d, queries.count);
          if (!with_dQ) return;
          cpu::multiply_add(queries_at(dQ_, head, batch, queries), d, {own.dS, keys.count, 1},
                            keys_at(K_, head, batch, keys), d, queries.count, d, keys.count);
        });
      }
      if (mask_.has_singles()) {
        for (std::int64_t r = 0; r < keys.count; ++r) {
          add_single_queries(head, batch, keys.first + r, own, own.dK + r * d, own.dV + r * dv);
        }
      }
    }
    cpu::scale_row(own.dK, keys.count * d, static_cast<float>(problem_.softmax_scale));
    const RowBlock rows{batch.tensor_batch, batch.k_begin + task.rows.first, task.rows.count,
                        task.head};
    cpu::store_rows(*args_.dK, rows, own.dK);
    cpu::store_rows(*args_.dV, rows, own.dV);
  }

  RowBlock rows_of(const Task& task, const Batch& batch) const {
    return {batch.tensor_batch, batch.q_begin + task.rows.first, task.rows.count, task.head};
  }

  void pack_queries(const Task& task, const Batch& batch, const Tiles& own) const {
    const Rows queries = task.rows;
    const RowBlock rows = rows_of(task, batch);
    float* const dO = queries_at(dO_, task.head, batch, queries);
    cpu::load_rows(*args_.Q, rows, queries_at(Q_, task.head, batch, queries));
    cpu::load_rows(*args_.dO, rows, dO);
    cpu::load_rows(*args_.O, rows, own.O);
    cpu::load_scalars(*args_.LSE, rows, queries_at(LSE_, task.head, batch, queries));
    if (args_.dLSE != nullptr) cpu::load_scalars(*args_.dLSE, rows, own.dLSE);
    cpu::row_deltas(dO, own.O, args_.dLSE != nullptr ? own.dLSE : nullptr, queries.count,
                    problem_.head_dim_v, queries_at(delta_, task.head, batch, queries));
  }

  // P and dS of one tile.
  void recompute(std::int64_t head, const Batch& batch, Rows queries, Rows keys,
                 const Tiles& own) const {
    const std::int64_t dv = problem_.head_dim_v;
    cpu::score_tile(problem_, batch, {head, queries.first, queries.count, keys.first, keys.count},
                    queries_at(Q_, head, batch, queries), keys_at(Kt_, head, batch, keys), own.P,
                    own.slope);
    mask_.hide(queries, keys, own.P);
    cpu::probabilities(queries_at(LSE_, head, batch, queries), queries.count, keys.count, own.P);
    std::fill(own.dS, own.dS + queries.count * keys.count, 0.0f);
    cpu::multiply_add(own.dS, keys.count, {queries_at(dO_, head, batch, queries), dv, 1},
                      keys_at(Vt_, head, batch, keys), keys.count, queries.count, keys.count, dv);
    cpu::score_gradients(own.P, own.slope, queries_at(delta_, head, batch, queries), queries.count,
                         keys.count, own.dS);
  }

  void add_single_keys(std::int64_t head, const Batch& batch, std::int64_t i, const Tiles& own,
                       float* dQ) const {
    const std::int64_t at = first_query(problem_, batch) + i, kv_head = kv_head_of(head);
    const SequenceRows K = K_.of(kv_head, first_key(problem_, batch));
    const SequenceRows V = V_.of(kv_head, first_key(problem_, batch));
    for_gathered(mask_.single_keys(batch, i), [&](const Gathered& keys) {
      dot_each(Q_.at(head, at), K, keys, own.P);
      finish_scores(problem_, head, i + batch.shift, keys, own.P, own.slope);
      cpu::probabilities(LSE_.at(head, at), 1, keys.count, own.P);
      dot_each(dO_.at(head, at), V, keys, own.dS);
      cpu::score_gradients(own.P, own.slope, delta_.at(head, at), 1, keys.count, own.dS);
      add_each(dQ, own.dS, K, keys);
    });
  }

  void add_single_queries(std::int64_t head, const Batch& batch, std::int64_t j, const Tiles& own,
                          float* dK, float* dV) const {
    const std::int64_t first = first_query(problem_, batch), at = first_key(problem_, batch) + j;
    const std::int64_t kv_head = kv_head_of(head);
    const SequenceRows Q = Q_.of(head, first), dO = dO_.of(head, first);
    for_gathered(mask_.single_queries(batch, j), [&](const Gathered& queries) {
      for (std::int64_t n = 0; n < queries.count; ++n) {
        own.LSE[n] = *LSE_.at(head, first + queries[n]);
        own.delta[n] = *delta_.at(head, first + queries[n]);
      }
      dot_each(K_.at(kv_head, at), Q, queries, own.P);
      finish_scores(problem_, head, j - batch.shift, queries, own.P, own.slope);
      cpu::probabilities(own.LSE, queries.count, 1, own.P);
      dot_each(V_.at(kv_head, at), dO, queries, own.dS);
      cpu::score_gradients(own.P, own.slope, own.delta, queries.count, 1, own.dS);
      add_each(dV, own.P, dO, queries);
      add_each(dK, own.dS, Q, queries);
    });
  }

  std::int64_t kv_head_of(std::int64_t head) const {
    return head / (problem_.num_heads_q / problem_.num_heads_kv);
  }

  float* queries_at(const PackedRows& packed, std::int64_t head, const Batch& batch,
                    Rows queries) const {
    return packed.at(head, first_query(problem_, batch) + queries.first);
  }

  // Returns the keys of the head that the query head reads.
  const float* keys_at(const PackedRows& packed, std::int64_t head, const Batch& batch,
                       Rows keys) const {
    return packed.at(kv_head_of(head), first_key(problem_, batch) + keys.first);
  }

  const attest_backward_args& args_;
  const attest_problem& problem_;
  SplitMask mask_;
  PackedRows K_{};
  PackedRows Kt_{}, Vt_{};  // transposed tile by tile
  PackedRows V_{};          // where there are single pairs
  PackedRows Q_{}, dO_{}, dQ_{}, LSE_{}, delta_{};
  float* threads_ = nullptr;
};

}  // namespace

std::int64_t backward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem),
                            2 * d + (may_have_singles(problem) ? 2 : 1) * dv) +
         PackedRows::floats(problem.num_heads_q, stored_queries(problem), 2 * d + dv + 2) +
         std::max(problem.num_threads, 1) * Tiles::floats(problem);
}

void backward(const attest_backward_args& args) { Backward(args).run(); }

}  // namespace attest::sparse
