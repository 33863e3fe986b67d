#include "sparse/kernels/forward.hpp"

#include <algorithm>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/running_softmax.hpp"
#include "cpu/kernels/score_tile.hpp"
#include "cpu/kernels/tensor_io.hpp"
#include "sparse/kernels/gathered.hpp"
#include "sparse/kernels/packed_rows.hpp"
#include "sparse/kernels/split_mask.hpp"

namespace attest::sparse {
namespace {

using cpu::Batch;
using cpu::RowBlock;

// One thread's tile of queries.
struct Tile {
  float *Q, *O, *S, *m, *l;

  static std::int64_t floats(const attest_problem& problem) {
    return kTile * (problem.head_dim_qk + problem.head_dim_v + kTile + 2);
  }
  Tile(const attest_problem& problem, float* first) {
    Pieces pieces(first);
    Q = pieces.take(kTile * problem.head_dim_qk), O = pieces.take(kTile * problem.head_dim_v);
    S = pieces.take(kTile * kTile), m = pieces.take(kTile), l = pieces.take(kTile);
  }
};
static_assert(kGathered <= kTile * kTile, "gathered scores lie in S");

class Forward {
 public:
  explicit Forward(const attest_forward_args& args)
      : args_(args), problem_(*args.problem), mask_(problem_, false) {
    Pieces pieces(args.workspace);
    const std::int64_t keys = stored_keys(problem_), heads = problem_.num_heads_kv;
    Kt_ = pieces.rows(heads, keys, problem_.head_dim_qk);
    V_ = pieces.rows(heads, keys, problem_.head_dim_v);
    if (mask_.has_singles()) K_ = pieces.rows(heads, keys, problem_.head_dim_qk);
    threads_ = pieces.rest();
  }

  void run() const {
    run_longest_first(mask_.key_tasks(), problem_.num_threads,
                      [this](const Task& task, int) { pack(task); });
    run_longest_first(mask_.query_tasks(), problem_.num_threads,
                      [this](const Task& task, int thread) {
                        attend(task, Tile(problem_, threads_ + thread * Tile::floats(problem_)));
                      });
  }

 private:
  void pack(const Task& task) const {
    const Batch batch = cpu::batch_of(problem_, task.batch);
    const Rows keys = existing(task.rows, batch);
    const RowBlock rows{batch.tensor_batch, batch.k_begin + keys.first, keys.count, task.head};
    const std::int64_t at = first_key(problem_, batch) + keys.first;
    if (!task.is_single) cpu::load_transposed(*args_.K, rows, Kt_.at(task.head, at));
    if (mask_.has_singles()) cpu::load_rows(*args_.K, rows, K_.at(task.head, at));
    cpu::load_rows(*args_.V, rows, V_.at(task.head, at));
    for (std::int64_t r = 0; r < keys.count; ++r) {
      if (mask_.is_seen(batch, keys.first + r)) continue;
      if (!task.is_single) clear_column(Kt_.at(task.head, at) + r, keys.count, Kt_.columns);
      clear_column(V_.at(task.head, at + r), 1, V_.columns);
    }
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
      const std::int64_t at = first_key(problem_, batch) + keys.first;
      cpu::score_tile(problem_, batch, {task.head, task.rows.first, count, keys.first, keys.count},
                      own.Q, Kt_.at(kv_head, at), own.S, nullptr);
      mask_.hide(task.rows, keys, own.S);
      cpu::update_rows(count, keys.count, dv, own.S, own.m, own.l, own.O);
      cpu::multiply_add(own.O, dv, {own.S, keys.count, 1}, V_.at(kv_head, at), dv, count, dv,
                        keys.count);
    });
  }

  void add_singles(const Task& task, const Batch& batch, std::int64_t r, const Tile& own) const {
    const std::int64_t i = task.rows.first + r, dv = problem_.head_dim_v;
    const std::int64_t kv_head = kv_head_of(task.head), first = first_key(problem_, batch);
    const SequenceRows K{K_, kv_head, first}, V{V_, kv_head, first};
    for_gathered(mask_.single_keys(batch, i), [&](const Gathered& keys) {
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
  PackedRows Kt_{}, V_{};  // K transposed tile by tile
  PackedRows K_{};         // where there are single pairs
  float* threads_ = nullptr;
};

}  // namespace

std::int64_t forward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, singles = may_have_singles(problem) ? d : 0;
  return PackedRows::floats(problem.num_heads_kv, stored_keys(problem),
                            d + problem.head_dim_v + singles) +
         std::max(problem.num_threads, 1) * Tile::floats(problem);
}

void forward(const attest_forward_args& args) { Forward(args).run(); }

}  // namespace attest::sparse
