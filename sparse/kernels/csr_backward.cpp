#include <algorithm>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/score_tile.hpp"
#include "cpu/kernels/tensor_io.hpp"
#include "sparse/kernels/csr_gather.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/row_tasks.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::RowBlock;

// One thread's rows and pairs.
struct Scratch {
  float *O, *dQ, *dK, *dV, *P, *slope, *dS, *LSE, *delta;

  static std::int64_t floats(const attest_problem& problem) {
    return 2 * (problem.head_dim_qk + problem.head_dim_v) + 5 * kGathered;
  }
  Scratch(const attest_problem& problem, float* first) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Pieces pieces(first);
    O = pieces.take(dv), dQ = pieces.take(d), dK = pieces.take(d), dV = pieces.take(dv);
    P = pieces.take(kGathered), slope = pieces.take(kGathered), dS = pieces.take(kGathered);
    LSE = pieces.take(kGathered), delta = pieces.take(kGathered);
    if (problem.softcap <= 0) slope = nullptr;
  }
};

class Backward {
 public:
  explicit Backward(const attest_backward_args& args) : args_(args), problem_(*args.problem) {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t keys = stored_keys(problem_), kv_heads = problem_.num_heads_kv;
    const std::int64_t queries = stored_queries(problem_), heads = problem_.num_heads_q;
    Pieces pieces(args.workspace);
    K_ = pieces.rows(kv_heads, keys, d), V_ = pieces.rows(kv_heads, keys, dv);
    Q_ = pieces.rows(heads, queries, d), dO_ = pieces.rows(heads, queries, dv);
    LSE_ = pieces.rows(heads, queries, 1), delta_ = pieces.rows(heads, queries, 1);
    threads_ = pieces.rest();
  }

  void run() const {
    const auto on_threads = [&](const std::vector<Task>& tasks, auto step) {
      run_longest_first(tasks, problem_.num_threads, [&](const Task& task, int thread) {
        (this->*step)(task, cpu::batch_of(problem_, task.batch),
                      Scratch(problem_, threads_ + thread * Scratch::floats(problem_)));
      });
    };
    const std::vector<Task> keys = row_tasks(
        problem_, problem_.num_heads_kv, [](const Batch& batch) { return batch.k_length; },
        [this](const Batch& batch, std::int64_t j) {
          return j < batch.keys ? queries_of(problem_, batch, j).count : 0;
        });
    const std::vector<Task> queries = row_tasks(
        problem_, problem_.num_heads_q, [](const Batch& batch) { return batch.q_length; },
        [this](const Batch& batch, std::int64_t i) { return keys_of(problem_, batch, i).count; });
    on_threads(keys, &Backward::pack_keys);
    on_threads(queries, &Backward::query_pass);  // packs its queries for the next
    on_threads(keys, &Backward::key_pass);
  }

 private:
  void pack_keys(const Task& task, const Batch& batch, const Scratch&) const {
    for_rows_of(task, [&](std::int64_t j) {
      if (j >= batch.keys) return;  // does not exist
      const RowBlock row{batch.tensor_batch, batch.k_begin + j, 1, task.head};
      const std::int64_t at = first_key(problem_, batch) + j;
      cpu::load_rows(*args_.K, row, K_.at(task.head, at));
      cpu::load_rows(*args_.V, row, V_.at(task.head, at));
    });
  }

  // dQ of each query: the keys of its list are gathered.
  void query_pass(const Task& task, const Batch& batch, const Scratch& own) const {
    const std::int64_t d = problem_.head_dim_qk;
    const std::int64_t kv_head = task.head / (problem_.num_heads_q / problem_.num_heads_kv);
    const SequenceRows K{K_, kv_head, first_key(problem_, batch)};
    const SequenceRows V{V_, kv_head, first_key(problem_, batch)};
    for_rows_of(task, [&](std::int64_t i) {
      const RowBlock row = pack_query(task.head, batch, i, own);
      const std::int64_t at = first_query(problem_, batch) + i;
      std::fill(own.dQ, own.dQ + d, 0.0f);
      for_gathered(keys_of(problem_, batch, i), [&](const Gathered& keys) {
        dot_each(Q_.at(task.head, at), K, keys, own.P);
        finish_scores(problem_, task.head, i + batch.shift, keys, own.P, own.slope);
        cpu::probabilities(LSE_.at(task.head, at), 1, keys.count, own.P);
        dot_each(dO_.at(task.head, at), V, keys, own.dS);
        cpu::score_gradients(own.P, own.slope, delta_.at(task.head, at), 1, keys.count, own.dS);
        add_each(own.dQ, own.dS, K, keys);
      });
      cpu::scale_row(own.dQ, d, static_cast<float>(problem_.softmax_scale));
      cpu::store_rows(*args_.dQ, row, own.dQ);
    });
  }

  // dK and dV of each key: the queries of its list are gathered, for all heads of the group. Keys
  // that do not exist have none.
  void key_pass(const Task& task, const Batch& batch, const Scratch& own) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t group = problem_.num_heads_q / problem_.num_heads_kv;
    for_rows_of(task, [&](std::int64_t j) {
      std::fill(own.dK, own.dK + d, 0.0f);
      std::fill(own.dV, own.dV + dv, 0.0f);
      const RowList queries = j < batch.keys ? queries_of(problem_, batch, j) : RowList{};
      for (std::int64_t head = task.head * group; head < (task.head + 1) * group; ++head) {
        add_queries(head, batch, j, queries, own);
      }
      cpu::scale_row(own.dK, d, static_cast<float>(problem_.softmax_scale));
      const RowBlock row{batch.tensor_batch, batch.k_begin + j, 1, task.head};
      cpu::store_rows(*args_.dK, row, own.dK);
      cpu::store_rows(*args_.dV, row, own.dV);
    });
  }

  void add_queries(std::int64_t head, const Batch& batch, std::int64_t j, const RowList& list,
                   const Scratch& own) const {
    const std::int64_t kv_head = head / (problem_.num_heads_q / problem_.num_heads_kv);
    const std::int64_t first = first_query(problem_, batch), at = first_key(problem_, batch) + j;
    const SequenceRows Q{Q_, head, first}, dO{dO_, head, first};
    for_gathered(list, [&](const Gathered& queries) {
      for (std::int64_t n = 0; n < queries.count; ++n) {
        own.LSE[n] = *LSE_.at(head, first + queries[n]);
        own.delta[n] = *delta_.at(head, first + queries[n]);
      }
      dot_each(K_.at(kv_head, at), Q, queries, own.P);
      finish_scores(problem_, head, j - batch.shift, queries, own.P, own.slope);
      cpu::probabilities(own.LSE, queries.count, 1, own.P);
      dot_each(V_.at(kv_head, at), dO, queries, own.dS);
      cpu::score_gradients(own.P, own.slope, own.delta, queries.count, 1, own.dS);
      add_each(own.dV, own.P, dO, queries);
      add_each(own.dK, own.dS, Q, queries);
    });
  }

  RowBlock pack_query(std::int64_t head, const Batch& batch, std::int64_t i,
                      const Scratch& own) const {
    const RowBlock row{batch.tensor_batch, batch.q_begin + i, 1, head};
    const std::int64_t at = first_query(problem_, batch) + i;
    float* const dO = dO_.at(head, at);
    cpu::load_rows(*args_.Q, row, Q_.at(head, at));
    cpu::load_rows(*args_.dO, row, dO);
    cpu::load_rows(*args_.O, row, own.O);
    cpu::load_scalars(*args_.LSE, row, LSE_.at(head, at));
    if (args_.dLSE != nullptr) cpu::load_scalars(*args_.dLSE, row, own.LSE);
    cpu::row_deltas(dO, own.O, args_.dLSE != nullptr ? own.LSE : nullptr, 1, problem_.head_dim_v,
                    delta_.at(head, at));
    return row;
  }

  const attest_backward_args& args_;
  const attest_problem& problem_;
  PackedRows K_{}, V_{}, Q_{}, dO_{}, LSE_{}, delta_{};
  float* threads_ = nullptr;
};

}  // namespace

std::int64_t csr_backward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem), d + dv) +
         PackedRows::floats(problem.num_heads_q, stored_queries(problem), d + dv + 2) +
         std::max(problem.num_threads, 1) * Scratch::floats(problem);
}

void csr_backward(const attest_backward_args& args) { Backward(args).run(); }

}  // namespace attest::sparse
