#include "sparse/kernels/backward.hpp"

#include <algorithm>
#include <limits>
#include <numbers>
#include <vector>

#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/tiles/score_panel.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/panels.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/input_rows.hpp"
#include "sparse/kernels/lists/split_mask.hpp"
#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::OutputRows;
using cpu::RowBlock;
using cpu::RowsView;

// One thread's tiles: a panel of queries, keys that some of them see, and what is summed for these;
// of gathered rows the scores lie in the first row of P and dS.
struct Tiles {
  float *Qt, *dOt, *O, *lse, *K, *V, *dK, *dV, *P, *slope, *dS, *S_rows, *LSE, *delta;

  static std::int64_t floats(const attest_problem& problem) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    return kTile * (3 * d + 4 * dv + 3 * kTile + 3) + cpu::PanelScores::row_floats(kTile, kTile);
  }
  Tiles(const attest_problem& problem, float* first) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Pieces pieces(first);
    Qt = pieces.take(kTile * d), dOt = pieces.take(kTile * dv), O = pieces.take(kTile * dv);
    K = pieces.take(kTile * d), V = pieces.take(kTile * dv);  // where some keys are not seen
    dK = pieces.take(kTile * d), dV = pieces.take(kTile * dv);
    P = pieces.take(kTile * kTile), slope = pieces.take(kTile * kTile);
    dS = pieces.take(kTile * kTile);
    S_rows = pieces.take(cpu::PanelScores::row_floats(kTile, kTile));
    lse = pieces.take(kTile), LSE = pieces.take(kTile), delta = pieces.take(kTile);
    if (!cpu::has_slope(problem)) slope = nullptr;
  }
};
static_assert(kTile == cpu::kMostLanes, "a tile of queries is one panel");
static_assert(kGathered <= kTile, "gathered rows are as many as a tile's");

class Backward {
 public:
  explicit Backward(const attest_backward_args& args)
      : args_(args),
        problem_(*args.problem),
        mask_(problem_, true),
        pieces_(args.workspace),
        K_(*args.K, stored_keys(problem_), pieces_),
        V_(*args.V, stored_keys(problem_), pieces_),
        Q_(*args.Q, stored_queries(problem_), pieces_),
        dO_(*args.dO, stored_queries(problem_), pieces_),
        dQ_(sums_beside(*args.dQ)),
        LSE_(pieces_.rows(stored_queries(problem_), 1)),
        delta_(pieces_.rows(stored_queries(problem_), 1)),
        threads_(cpu::at_line(pieces_.rest())) {}

  void run() const {
    const auto on_threads = [&](const std::vector<Task>& tasks, auto step) {
      run_longest_first(tasks, problem_.num_threads, [&](const Task& task, int thread) {
        (this->*step)(task, cpu::batch_of(problem_, task.batch),
                      Tiles(problem_, threads_ + thread * Tiles::floats(problem_)));
      });
    };
    const std::vector<Task> keys = mask_.key_tasks(), queries = mask_.query_tasks();
    if (K_.is_packed() || V_.is_packed()) on_threads(keys, &Backward::pack_keys);
    on_threads(queries, &Backward::begin_queries);
    if (is_one_pass_faster()) {
      const std::vector<std::vector<Task>> of_heads = by_head(keys);
      run_longest_first(work_of(of_heads), problem_.num_threads, [&](const Task& head, int thread) {
        const Tiles own(problem_, threads_ + thread * Tiles::floats(problem_));
        for (const Task& task : of_heads[static_cast<std::size_t>(head.head)]) {
          gradients_of_keys(task, cpu::batch_of(problem_, task.batch), own, true);
        }
      });
      on_threads(queries, &Backward::finish_queries);
    } else {
      on_threads(queries, &Backward::query_pass);
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
    K_.pack(rows);
    V_.pack(rows);
  }

  // Packs some queries and writes their delta; their dQ is 0.
  void begin_queries(const Task& task, const Batch& batch, const Tiles& own) const {
    const std::int64_t count = task.rows.count;
    const RowBlock rows = rows_of(task, batch);
    Q_.pack(rows);
    dO_.pack(rows);
    cpu::load_scalars(*args_.LSE, rows, queries_at(LSE_, task.head, batch, task.rows));
    if (args_.dLSE != nullptr) cpu::load_scalars(*args_.dLSE, rows, own.LSE);
    write_deltas(rows, args_.dLSE != nullptr ? own.LSE : nullptr, own,
                 queries_at(delta_, task.head, batch, task.rows));
    const OutputRows dQ = sums_of(task.head, batch, task.rows);
    for (std::int64_t r = 0; r < count; ++r) {
      std::fill_n(dQ.data + r * dQ.stride, problem_.head_dim_qk, 0.0f);
    }
  }

  void write_deltas(const RowBlock& rows, const float* dLSE, const Tiles& own, float* delta) const {
    const std::int64_t dv = problem_.head_dim_v;
    const SequenceRows dO = dO_.at(rows.batch, rows.first, rows.head);
    cpu::load_rows(*args_.O, rows, own.O);
    for (std::int64_t r = 0; r < rows.count; ++r) {
      cpu::row_deltas(dO[r], own.O + r * dv, dLSE == nullptr ? nullptr : dLSE + r, 1, dv,
                      delta + r);
    }
  }

  // dQ of some queries: the key tiles and the single keys of their lists stream past.
  void query_pass(const Task& task, const Batch& batch, const Tiles& own) const {
    if (!task.is_single) {
      const cpu::QueryPanel panel = load_panel(task.head, batch, task.rows, own);
      mask_.tiles().for_keys(batch, task.tile, [&](Rows keys) {
        add_query_gradients(panel, batch, keys, recompute(panel, batch, keys, own), own);
      });
    }
    finish_queries(task, batch, own);
  }

  // Adds the single keys to dQ, and stores it.
  void finish_queries(const Task& task, const Batch& batch, const Tiles& own) const {
    const OutputRows dQ = sums_of(task.head, batch, task.rows);
    for (std::int64_t r = 0; r < task.rows.count; ++r) {
      float* const row = dQ.data + r * dQ.stride;
      if (mask_.has_singles()) add_single_keys(task.head, batch, task.rows.first + r, own, row);
      cpu::scale_row(row, problem_.head_dim_qk, static_cast<float>(problem_.softmax_scale));
    }
    if (dQ_.data != nullptr) cpu::store_rows(*args_.dQ, rows_of(task, batch), dQ.data);
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
          const cpu::QueryPanel panel = load_panel(head, batch, queries, own);
          const RowsView K = recompute(panel, batch, keys, own);
          add_key_gradients(panel, batch, keys, own);
          if (with_dQ) add_query_gradients(panel, batch, keys, K, own);
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

  // Q, dO and LSE of a tile of queries in lanes.
  cpu::QueryPanel load_panel(std::int64_t head, const Batch& batch, Rows queries,
                             const Tiles& own) const {
    const std::int64_t count = queries.count;
    const cpu::QueryRows rows(batch, head, queries.first, count);
    const cpu::QueryPanel panel(problem_, batch, rows, 0, kTile);
    const SequenceRows Q = query_rows(Q_, head, batch, queries.first),
                       dO = query_rows(dO_, head, batch, queries.first);
    cpu::pack_panel(Q.first, Q.stride, count, Q.columns, panel.lanes(), own.Qt);
    cpu::pack_panel(dO.first, dO.stride, count, dO.columns, panel.lanes(), own.dOt);
    std::fill_n(own.lse, panel.lanes(), -std::numeric_limits<float>::infinity());
    std::fill_n(own.delta, panel.lanes(), 0.0f);
    std::copy_n(queries_at(LSE_, head, batch, queries), count, own.lse);
    std::copy_n(queries_at(delta_, head, batch, queries), count, own.delta);
    cpu::scale_row(own.lse, count, std::numbers::log2e_v<float>);
    return panel;
  }

  // P and dS, (keys, lanes), of a tile; returns the rows of K.
  RowsView recompute(const cpu::QueryPanel& panel, const Batch& batch, Rows keys,
                     const Tiles& own) const {
    const std::int64_t lanes = panel.lanes(), kv_head = kv_head_of(panel.head(0));
    const RowsView K = mask_.seen_rows(batch, keys, key_rows(K_, kv_head, batch, 0), own.K),
                   V = mask_.seen_rows(batch, keys, key_rows(V_, kv_head, batch, 0), own.V);
    const cpu::PanelScores scores(problem_, batch, nullptr);
    scores(panel, own.Qt, K, keys.first, keys.count, own.S_rows, own.P, own.slope);
    mask_.hide({panel.query(0), panel.count()}, keys, lanes, own.P);
    cpu::multiply({own.dS,
                   lanes,
                   {V.data, V.stride, 1},
                   own.dOt,
                   lanes,
                   keys.count,
                   lanes,
                   problem_.head_dim_v},
                  1);
    cpu::gradient_panel(keys.count, lanes, own.lse, own.delta, 1, own.P, own.dS);
    for (std::int64_t e = 0; own.slope != nullptr && e < keys.count * lanes; ++e) {
      own.dS[e] *= own.slope[e];
    }
    return K;
  }

  void add_query_gradients(const cpu::QueryPanel& panel, const Batch& batch, Rows keys,
                           const RowsView& K, const Tiles& own) const {
    const OutputRows dQ = sums_of(panel.head(0), batch, {panel.query(0), panel.count()});
    cpu::multiply_add(dQ.data, dQ.stride, {own.dS, 1, panel.lanes()}, K.data, K.stride,
                      panel.count(), problem_.head_dim_qk, keys.count);
  }

  void add_key_gradients(const cpu::QueryPanel& panel, const Batch& batch, Rows keys,
                         const Tiles& own) const {
    const SequenceRows Q = query_rows(Q_, panel.head(0), batch, panel.query(0)),
                       dO = query_rows(dO_, panel.head(0), batch, panel.query(0));
    cpu::multiply_add(own.dV, dO.columns, {own.P, panel.lanes(), 1}, dO.first, dO.stride,
                      keys.count, dO.columns, panel.count());
    cpu::multiply_add(own.dK, Q.columns, {own.dS, panel.lanes(), 1}, Q.first, Q.stride, keys.count,
                      Q.columns, panel.count());
  }

  void add_single_keys(std::int64_t head, const Batch& batch, std::int64_t i, const Tiles& own,
                       float* dQ) const {
    const std::int64_t at = first_query(problem_, batch) + i, kv_head = kv_head_of(head);
    const SequenceRows K = key_rows(K_, kv_head, batch, 0), V = key_rows(V_, kv_head, batch, 0),
                       Q = query_rows(Q_, head, batch, i), dO = query_rows(dO_, head, batch, i);
    for_gathered(mask_.single_keys(batch, i), [&](const Gathered& keys) {
      dot_each(Q.first, K, keys, own.P);
      finish_scores(problem_, head, i + batch.shift, keys, own.P, own.slope);
      cpu::probabilities(LSE_.at(head, at), 1, keys.count, own.P);
      dot_each(dO.first, V, keys, own.dS);
      cpu::score_gradients(own.P, own.slope, delta_.at(head, at), 1, keys.count, own.dS);
      add_each(dQ, own.dS, K, keys);
    });
  }

  void add_single_queries(std::int64_t head, const Batch& batch, std::int64_t j, const Tiles& own,
                          float* dK, float* dV) const {
    const std::int64_t first = first_query(problem_, batch), kv_head = kv_head_of(head);
    const SequenceRows Q = query_rows(Q_, head, batch, 0), dO = query_rows(dO_, head, batch, 0);
    for_gathered(mask_.single_queries(batch, j), [&](const Gathered& queries) {
      for (std::int64_t n = 0; n < queries.count; ++n) {
        own.LSE[n] = *LSE_.at(head, first + queries[n]);
        own.delta[n] = *delta_.at(head, first + queries[n]);
      }
      dot_each(key_rows(K_, kv_head, batch, j).first, Q, queries, own.P);
      finish_scores(problem_, head, j - batch.shift, queries, own.P, own.slope);
      cpu::probabilities(own.LSE, queries.count, 1, own.P);
      dot_each(key_rows(V_, kv_head, batch, j).first, dO, queries, own.dS);
      cpu::score_gradients(own.P, own.slope, own.delta, queries.count, 1, own.dS);
      add_each(dV, own.P, dO, queries);
      add_each(dK, own.dS, Q, queries);
    });
  }

  std::int64_t kv_head_of(std::int64_t head) const {
    return head / (problem_.num_heads_q / problem_.num_heads_kv);
  }

  // Room for dQ where its tensor holds no rows of float32.
  PackedRows sums_beside(const attest_tensor& dQ) {
    if (cpu::float_rows(dQ) != nullptr) return {};
    return pieces_.rows(stored_queries(problem_), problem_.head_dim_qk);
  }

  // Where dQ of some queries is summed: in its tensor, or beside it.
  OutputRows sums_of(std::int64_t head, const Batch& batch, Rows queries) const {
    if (dQ_.data != nullptr) return {queries_at(dQ_, head, batch, queries), dQ_.columns};
    return cpu::output_rows(
        *args_.dQ, {batch.tensor_batch, batch.q_begin + queries.first, queries.count, head});
  }

  float* queries_at(const PackedRows& packed, std::int64_t head, const Batch& batch,
                    Rows queries) const {
    return packed.at(head, first_query(problem_, batch) + queries.first);
  }

  static SequenceRows query_rows(const InputRows& input, std::int64_t head, const Batch& batch,
                                 std::int64_t first) {
    return input.at(batch.tensor_batch, batch.q_begin + first, head);
  }
  static SequenceRows key_rows(const InputRows& input, std::int64_t kv_head, const Batch& batch,
                               std::int64_t first) {
    return input.at(batch.tensor_batch, batch.k_begin + first, kv_head);
  }

  const attest_backward_args& args_;
  const attest_problem& problem_;
  SplitMask mask_;
  Pieces pieces_;
  InputRows K_, V_, Q_, dO_;
  PackedRows dQ_, LSE_, delta_;  // dQ_ may be none
  float* threads_;
};

}  // namespace

std::int64_t backward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return InputRows::floats(stored_keys(problem), d + dv) +
         InputRows::floats(stored_queries(problem), 2 * d + dv + 2) + cpu::kLineFloats +
         std::max(problem.num_threads, 1) * Tiles::floats(problem);
}

void backward(const attest_backward_args& args) { Backward(args).run(); }

}  // namespace attest::sparse
