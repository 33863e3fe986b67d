#include "sparse/kernels/forward.hpp"

#include <algorithm>
#include <numbers>

#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/tiles/panel_sums.hpp"
#include "cpu/kernels/tiles/running_softmax.hpp"
#include "cpu/kernels/tiles/score_panel.hpp"
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
using cpu::RowBlock;
using cpu::RowsView;

// One thread's tile of queries: in lanes, and in rows for single pairs.
struct Tile {
  float *Q, *Qt, *O, *O_rows, *S, *S_rows, *m, *l, *rescale, *V;

  static std::int64_t floats(const attest_problem& problem) {
    return kTile * (2 * problem.head_dim_qk + 3 * problem.head_dim_v + kTile + 3) +
           cpu::PanelScores::row_floats(kTile, kTile);
  }
  Tile(const attest_problem& problem, float* first) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Pieces pieces(first);
    Q = pieces.take(kTile * d), Qt = pieces.take(kTile * d);
    O = pieces.take(kTile * dv), O_rows = pieces.take(kTile * dv);
    V = pieces.take(kTile * dv);  // with zeros for keys that no query sees
    S = pieces.take(kTile * kTile);
    S_rows = pieces.take(cpu::PanelScores::row_floats(kTile, kTile));
    m = pieces.take(kTile), l = pieces.take(kTile), rescale = pieces.take(kTile);
  }
};
static_assert(kTile == cpu::kMostLanes, "a tile of queries is one panel");
static_assert(kGathered <= kTile * kTile, "gathered scores lie in S");

class Forward {
 public:
  explicit Forward(const attest_forward_args& args)
      : args_(args),
        problem_(*args.problem),
        mask_(problem_, false),
        pieces_(args.workspace),
        K_(*args.K, stored_keys(problem_), pieces_),
        V_(*args.V, stored_keys(problem_), pieces_),
        threads_(cpu::at_line(pieces_.rest())) {}

  void run() const {
    if (K_.is_packed() || V_.is_packed()) {
      run_longest_first(mask_.key_tasks(), problem_.num_threads,
                        [this](const Task& task, int) { pack(task); });
    }
    run_longest_first(mask_.query_tasks(), problem_.num_threads,
                      [this](const Task& task, int thread) {
                        const Tile own(problem_, threads_ + thread * Tile::floats(problem_));
                        if (task.is_single) {
                          attend_singles(task, own);
                        } else {
                          attend(task, own);
                        }
                      });
  }

 private:
  void pack(const Task& task) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const Rows keys = existing(task.rows, batch);
    const RowBlock rows{batch.tensor_batch, batch.k_begin + keys.first, keys.count, task.head};
    K_.pack(rows);
    V_.pack(rows);
  }

  // Rows of which some meet tiles.
  void attend(const Task& task, const Tile& own) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const cpu::PanelForward pass(args_, batch, nullptr);
    const cpu::PanelSums sums = sums_of(task, batch, own);
    pass.begin(sums, own.Q);
    add_tiles(pass, task, batch, sums, own);
    if (!mask_.has_singles()) return pass.finish(sums, own.O_rows);
    pass.put_rows(sums, 0, task.rows.count, own.O_rows, problem_.head_dim_v);
    cpu::scale_row(own.m, task.rows.count, std::numbers::ln2_v<float>);
    finish_singles(task, batch, own);
  }

  // Rows that meet no tile.
  void attend_singles(const Task& task, const Tile& own) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    std::fill_n(own.O_rows, task.rows.count * problem_.head_dim_v, 0.0f);
    cpu::start_rows(task.rows.count, own.m, own.l);
    finish_singles(task, batch, own);
  }

  void finish_singles(const Task& task, const Batch& batch, const Tile& own) const {
    const RowBlock rows = rows_of(task, batch);
    cpu::load_rows(*args_.Q, rows, own.Q);
    for (std::int64_t r = 0; r < rows.count; ++r) add_singles(task, batch, r, own);
    cpu::finish_rows(rows.count, problem_.head_dim_v, own.m, own.l, own.O_rows);
    cpu::store_rows(*args_.O, rows, own.O_rows);
    if (args_.LSE != nullptr) cpu::store_scalars(*args_.LSE, rows, own.m);
  }

  RowBlock rows_of(const Task& task, const Batch& batch) const {
    return {batch.tensor_batch, batch.q_begin + task.rows.first, task.rows.count, task.head};
  }

  cpu::PanelSums sums_of(const Task& task, const Batch& batch, const Tile& own) const {
    const cpu::QueryRows rows(batch, task.head, task.rows.first, task.rows.count);
    return {rows, {problem_, batch, rows, 0, kTile}, own.Qt, own.O, own.m, own.l};
  }

  void add_tiles(const cpu::PanelForward& pass, const Task& task, const Batch& batch,
                 const cpu::PanelSums& sums, const Tile& own) const {
    const cpu::PanelScores scores(problem_, batch, nullptr);
    const std::int64_t kv_head = kv_head_of(task.head), lanes = sums.panel.lanes();
    const SequenceRows K = K_.at(batch.tensor_batch, batch.k_begin, kv_head),
                       V = V_.at(batch.tensor_batch, batch.k_begin, kv_head);
    mask_.tiles().for_keys(batch, task.tile, [&](Rows keys) {
      scores(sums.panel, own.Qt, {K[keys.first], K.stride}, keys.first, keys.count, own.S_rows,
             own.S, nullptr);
      mask_.hide(task.rows, keys, lanes, own.S);
      cpu::update_panel(keys.count, lanes, own.S, own.m, own.l, own.rescale);
      const RowsView seen_V = mask_.seen_rows(batch, keys, V, own.V);
      pass.add_values(sums, seen_V, keys.count, own.S, own.rescale);
    });
  }

  void add_singles(const Task& task, const Batch& batch, std::int64_t r, const Tile& own) const {
    const std::int64_t i = task.rows.first + r, dv = problem_.head_dim_v;
    const std::int64_t kv_head = kv_head_of(task.head);
    const RowList list = mask_.single_keys(batch, i);
    if (list.count == 0) return;
    const SequenceRows K = K_.at(batch.tensor_batch, batch.k_begin, kv_head),
                       V = V_.at(batch.tensor_batch, batch.k_begin, kv_head);
    for_gathered(list, [&](const Gathered& keys) {
      dot_each(own.Q + r * problem_.head_dim_qk, K, keys, own.S);
      finish_scores(problem_, task.head, i + batch.shift, keys, own.S, nullptr);
      cpu::update_rows(1, keys.count, dv, own.S, own.m + r, own.l + r, own.O_rows + r * dv);
      add_each(own.O_rows + r * dv, own.S, V, keys);
    });
  }

  std::int64_t kv_head_of(std::int64_t head) const {
    return head / (problem_.num_heads_q / problem_.num_heads_kv);
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  SplitMask mask_;
  Pieces pieces_;
  InputRows K_, V_;
  float* threads_;
};

}  // namespace

std::int64_t forward_floats(const attest_problem& problem) {
  return InputRows::floats(stored_keys(problem), problem.head_dim_qk + problem.head_dim_v) +
         cpu::kLineFloats + std::max(problem.num_threads, 1) * Tile::floats(problem);
}

void forward(const attest_forward_args& args) { Forward(args).run(); }

}  // namespace attest::sparse
