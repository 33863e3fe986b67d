#include <algorithm>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/running_softmax.hpp"
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

std::int64_t floats_per_thread(const attest_problem& problem) {
  return kTile * (problem.head_dim_qk + problem.head_dim_v + kTile + 2);
}

class Forward {
 public:
  explicit Forward(const attest_forward_args& args)
      : args_(args), problem_(*args.problem), tiles_(problem_) {
    Pieces pieces(args.workspace);
    const std::int64_t keys = stored_keys(problem_), heads = problem_.num_heads_kv;
    Kt_ = pieces.rows(heads, keys, problem_.head_dim_qk);
    V_ = pieces.rows(heads, keys, problem_.head_dim_v);
    threads_ = pieces.rest();
  }

  void run() const {
    run_longest_first(tiles_.key_tasks(), problem_.num_threads,
                      [this](const Task& task, int) { pack(task); });
    run_longest_first(tiles_.query_tasks(), problem_.num_threads,
                      [this](const Task& task, int thread) { attend(task, thread); });
  }

 private:
  void pack(const Task& task) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const Rows keys = tiles_.keys().tile(task.part, batch.keys);
    const RowBlock rows{batch.tensor_batch, batch.k_begin + keys.first, keys.count, task.head};
    const std::int64_t at = first_key(problem_, batch) + keys.first;
    cpu::load_transposed(*args_.K, rows, Kt_.at(task.head, at));
    cpu::load_rows(*args_.V, rows, V_.at(task.head, at));
  }

  void attend(const Task& task, int thread) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const Rows queries = tiles_.queries().tile(task.part, batch.q_length);
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t kv_head = task.head / (problem_.num_heads_q / problem_.num_heads_kv);
    const RowBlock rows{batch.tensor_batch, batch.q_begin + queries.first, queries.count,
                        task.head};
    Pieces pieces(threads_ + thread * floats_per_thread(problem_));
    float *Q = pieces.take(kTile * d), *O = pieces.take(kTile * dv),
          *S = pieces.take(kTile * kTile), *m = pieces.take(kTile), *l = pieces.take(kTile);
    cpu::load_rows(*args_.Q, rows, Q);
    std::fill(O, O + queries.count * dv, 0.0f);
    cpu::start_rows(queries.count, m, l);
    tiles_.for_keys(batch, task.part, [&](Rows keys) {
      const std::int64_t at = first_key(problem_, batch) + keys.first;
      cpu::score_tile(problem_, batch,
                      {task.head, queries.first, queries.count, keys.first, keys.count}, Q,
                      Kt_.at(kv_head, at), S, nullptr);
      cpu::update_rows(queries.count, keys.count, dv, S, m, l, O);
      cpu::multiply_add(O, dv, {S, keys.count, 1}, V_.at(kv_head, at), dv, queries.count, dv,
                        keys.count);
    });
    cpu::finish_rows(queries.count, dv, m, l, O);
    cpu::store_rows(*args_.O, rows, O);
    if (args_.LSE != nullptr) cpu::store_scalars(*args_.LSE, rows, m);
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  BlockTiles tiles_;
  PackedRows Kt_{}, V_{};  // K transposed tile by tile
  float* threads_ = nullptr;
};

}  // namespace

std::int64_t block_forward_floats(const attest_problem& problem) {
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem),
                            problem.head_dim_qk + problem.head_dim_v) +
         std::max(problem.num_threads, 1) * floats_per_thread(problem);
}

void block_forward(const attest_forward_args& args) { Forward(args).run(); }

}  // namespace attest::sparse
