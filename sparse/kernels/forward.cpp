#include "sparse/kernels/forward.hpp"

#include <algorithm>
#include <optional>

#include "cpu/kernels/tiles/running_softmax.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/key_rows.hpp"
#include "sparse/kernels/lists/split_mask.hpp"
#include "sparse/kernels/packed_rows.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::RowBlock;

// One thread's tile of queries.
struct Tile {
  float *Q, *O, *S, *m, *l, *V;

  static std::int64_t floats(const attest_problem& problem) {
    return kTile * (problem.head_dim_qk + 2 * problem.head_dim_v + kTile + 2);
  }
  Tile(const attest_problem& problem, float* first) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Pieces pieces(first);
    Q = pieces.take(kTile * d), O = pieces.take(kTile * dv), S = pieces.take(kTile * kTile);
    m = pieces.take(kTile), l = pieces.take(kTile);
    V = pieces.take(kTile * dv);  // with zeros for keys that no query sees
  }
};
static_assert(kGathered <= kTile * kTile, "gathered scores lie in S");

class Forward {
 public:
  explicit Forward(const attest_forward_args& args)
      : args_(args),
        problem_(*args.problem),
        mask_(problem_, false),
        pieces_(args.workspace),
        V_(problem_, *args.V, pieces_) {
    if (mask_.has_singles()) K_.emplace(problem_, *args.K, pieces_);
    Kt_ = pieces_.rows(problem_.num_heads_kv, stored_keys(problem_), problem_.head_dim_qk);
  }

  void run() const {
    run_longest_first(mask_.key_tasks(), problem_.num_threads,
                      [this](const Task& task, int) { pack(task); });
    run_longest_first(
        mask_.query_tasks(), problem_.num_threads, [this](const Task& task, int thread) {
          attend(task, Tile(problem_, pieces_.rest() + thread * Tile::floats(problem_)));
        });
  }

 private:
  void pack(const Task& task) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const Rows keys = existing(task.rows, batch);
    const RowBlock rows = rows_of(batch, task.head, keys);
    if (!task.is_single) {
      cpu::load_transposed(*args_.K, rows, packed_Kt(batch, task.head, keys));
    }
    if (K_ && K_->is_packed()) K_->pack(rows);
    if (V_.is_packed()) V_.pack(rows);
  }

  RowBlock rows_of(const Batch& batch, std::int64_t kv_head, Rows keys) const {
    return {batch.tensor_batch, batch.k_begin + keys.first, keys.count, kv_head};
  }

  float* packed_Kt(const Batch& batch, std::int64_t kv_head, Rows keys) const {
    return Kt_.at(kv_head, first_key(problem_, batch) + keys.first);
  }

  // Zeros in place of what no query sees: its weights are zeros, its values may be NaN.
  SequenceRows values(const Batch& batch, std::int64_t kv_head, Rows keys, const Tile& own) const {
    const SequenceRows V = V_.of(batch, kv_head).from(keys.first);
    if (mask_.are_seen(batch, keys)) return V;
    for (std::int64_t r = 0; r < keys.count; ++r) {
      float* const row = own.V + r * V.columns;
      std::fill_n(row, V.columns, 0.0f);
      if (mask_.is_seen(batch, keys.first + r)) std::copy_n(V[r], V.columns, row);
    }
    return {own.V, V.columns, V.columns};
  }

  void attend(const Task& task, const Tile& own) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const std::int64_t dv = problem_.head_dim_v, count = task.rows.count;
    const RowBlock rows{batch.tensor_batch, batch.q_begin + task.rows.first, count, task.head};
    cpu::load_rows(*args_.Q, rows, own.Q);
    std::fill(own.O, own.O + count * dv, 0.0f);
    cpu::start_rows(count, own.m, own.l);
    if (!task.is_single) add_tiles(task, batch, own);
    if (mask_.has_singles()) {
      for (std::int64_t r = 0; r < count; ++r) add_singles(task, batch, r, own);
    }
    cpu::finish_rows(count, dv, own.m, own.l, own.O);
    cpu::store_rows(*args_.O, rows, own.O);
    if (args_.LSE != nullptr) cpu::store_scalars(*args_.LSE, rows, own.m);
  }

  void add_tiles(const Task& task, const Batch& batch, const Tile& own) const {
    const std::int64_t dv = problem_.head_dim_v, count = task.rows.count;
    const std::int64_t kv_head = kv_head_of(task.head);
    mask_.tiles().for_keys(batch, task.tile, [&](Rows keys) {
      const float* const Kt = packed_Kt(batch, kv_head, keys);
      cpu::score_tile(problem_, batch, {task.head, task.rows.first, count, keys.first, keys.count},
                      own.Q, Kt, own.S, nullptr);
      mask_.hide(task.rows, keys, own.S);
      cpu::update_rows(count, keys.count, dv, own.S, own.m, own.l, own.O);
      const SequenceRows V = values(batch, kv_head, keys, own);
      cpu::multiply_add(own.O, dv, {own.S, keys.count, 1}, V.first, V.stride, count, dv,
                        keys.count);
    });
  }

  void add_singles(const Task& task, const Batch& batch, std::int64_t r, const Tile& own) const {
    const std::int64_t i = task.rows.first + r, dv = problem_.head_dim_v;
    const std::int64_t kv_head = kv_head_of(task.head);
    const RowList list = mask_.single_keys(batch, i);
    if (list.count == 0) return;
    const SequenceRows K = K_->of(batch, kv_head), V = V_.of(batch, kv_head);
    for_gathered(list, [&](const Gathered& keys) {
      dot_each(own.Q + r * problem_.head_dim_qk, K, keys, own.S);
      finish_scores(problem_, task.head, i + batch.shift, keys, own.S, nullptr);
      cpu::update_rows(1, keys.count, dv, own.S, own.m + r, own.l + r, own.O + r * dv);
      add_each(own.O + r * dv, own.S, V, keys);
    });
  }

  std::int64_t kv_head_of(std::int64_t head) const {
    return head / (problem_.num_heads_q / problem_.num_heads_kv);
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  SplitMask mask_;
  Pieces pieces_;
  KeyRows V_;
  std::optional<KeyRows> K_;  // where there are single pairs
  PackedRows Kt_{};           // transposed tile by tile
};

}  // namespace

std::int64_t forward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk;
  return KeyRows::floats(problem, problem.head_dim_v) +
         (may_have_singles(problem) ? 2 : 1) * KeyRows::floats(problem, d) +
         std::max(problem.num_threads, 1) * Tile::floats(problem);
}

void forward(const attest_forward_args& args) { Forward(args).run(); }

}  // namespace attest::sparse
