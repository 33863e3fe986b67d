#include <algorithm>

#include "cpu/kernels/running_softmax.hpp"
#include "cpu/kernels/tensor_io.hpp"
#include "sparse/kernels/csr_gather.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/row_tasks.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::RowBlock;

std::int64_t floats_per_thread(const attest_problem& problem) {
  return problem.head_dim_qk + problem.head_dim_v + kGathered + 2;
}

class Forward {
 public:
  explicit Forward(const attest_forward_args& args) : args_(args), problem_(*args.problem) {
    Pieces pieces(args.workspace);
    const std::int64_t keys = stored_keys(problem_), heads = problem_.num_heads_kv;
    K_ = pieces.rows(heads, keys, problem_.head_dim_qk);
    V_ = pieces.rows(heads, keys, problem_.head_dim_v);
    threads_ = pieces.rest();
  }

  void run() const {
    const auto one = [](const Batch&, std::int64_t) { return 1; };
    run_longest_first(
        row_tasks(
            problem_, problem_.num_heads_kv, [](const Batch& batch) { return batch.keys; }, one),
        problem_.num_threads, [this](const Task& task, int) { pack(task); });
    const auto visible = [this](const Batch& batch, std::int64_t i) {
      return keys_of(problem_, batch, i).count;
    };
    run_longest_first(row_tasks(
                          problem_, problem_.num_heads_q,
                          [](const Batch& batch) { return batch.q_length; }, visible),
                      problem_.num_threads,
                      [this](const Task& task, int thread) { attend(task, thread); });
  }

 private:
  void pack(const Task& task) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const RowBlock rows{batch.tensor_batch, batch.k_begin + task.part, task.rows, task.head};
    const std::int64_t at = first_key(problem_, batch) + task.part;
    cpu::load_rows(*args_.K, rows, K_.at(task.head, at));
    cpu::load_rows(*args_.V, rows, V_.at(task.head, at));
  }

  void attend(const Task& task, int thread) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const std::int64_t dv = problem_.head_dim_v;
    const std::int64_t kv_head = task.head / (problem_.num_heads_q / problem_.num_heads_kv);
    const SequenceRows K{K_, kv_head, first_key(problem_, batch)};
    const SequenceRows V{V_, kv_head, first_key(problem_, batch)};
    Pieces pieces(threads_ + thread * floats_per_thread(problem_));
    float *Q = pieces.take(problem_.head_dim_qk), *O = pieces.take(dv), *S = pieces.take(kGathered),
          *m = pieces.take(1), *l = pieces.take(1);
    for_rows_of(task, [&](std::int64_t i) {
      const RowBlock row{batch.tensor_batch, batch.q_begin + i, 1, task.head};
      cpu::load_rows(*args_.Q, row, Q);
      std::fill(O, O + dv, 0.0f);
      cpu::start_rows(1, m, l);
      for_gathered(keys_of(problem_, batch, i), [&](const Gathered& keys) {
        dot_each(Q, K, keys, S);
        finish_scores(problem_, task.head, i + batch.shift, keys, S, nullptr);
        cpu::update_rows(1, keys.count, dv, S, m, l, O);
        add_each(O, S, V, keys);
      });
      cpu::finish_rows(1, dv, m, l, O);
      cpu::store_rows(*args_.O, row, O);
      if (args_.LSE != nullptr) cpu::store_scalars(*args_.LSE, row, m);
    });
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  PackedRows K_{}, V_{};
  float* threads_ = nullptr;
};

}  // namespace

std::int64_t csr_forward_floats(const attest_problem& problem) {
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem),
                            problem.head_dim_qk + problem.head_dim_v) +
         std::max(problem.num_threads, 1) * floats_per_thread(problem);
}

void csr_forward(const attest_forward_args& args) { Forward(args).run(); }

}  // namespace attest::sparse
