#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "cpu/kernels/flash2/flash2.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/nonfinite/special_values.hpp"
#include "cpu/kernels/tiles/query_rows.hpp"
#include "cpu/kernels/tiles/score_panel.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/panels.hpp"

namespace attest::cpu {
namespace {

constexpr float kEmpty = -std::numeric_limits<float>::infinity();
constexpr std::int64_t kPanels = kBlockQ / kPanelLanes;
static_assert(kBlockQ % kPanelLanes == 0);

// Tells whether the queries of all heads of a group are one block.
bool is_grouped(const attest_problem& problem, const Batch& batch) {
  return batch.q_length * group_of(problem) <= kBlockQ;
}

// Keys of one part where the keys of few queries are split, else all: of the batch entry alone, so
// that neither the other entries nor the threads change a bit.
std::int64_t keys_of_split(const attest_problem& problem, const Batch& batch) {
  if (batch.q_length * group_of(problem) > kPanelLanes)
    return std::max<std::int64_t>(batch.keys, 1);
  const std::int64_t even = (batch.keys + kMostSplits - 1) / kMostSplits;
  return std::max(kSplitKeys, (even + kBlockK - 1) / kBlockK * kBlockK);
}

std::int64_t splits_of(const attest_problem& problem, const Batch& batch) {
  const std::int64_t keys = keys_of_split(problem, batch);
  return std::max<std::int64_t>((batch.keys + keys - 1) / keys, 1);
}

// Floats of what a part of the keys leaves: O, m and l of a panel.
std::int64_t split_floats(const attest_problem& problem) {
  return kPanelLanes * (problem.head_dim_v + 2);
}

// Tells whether some batch entry's keys may be split.
bool may_split(const attest_problem& problem) {
  const bool few =
      problem.mask.cu_seqlens_q != nullptr || problem.seqlen_q * group_of(problem) <= kPanelLanes;
  return few && problem.seqlen_k > kSplitKeys;
}

std::int64_t shared_floats(const attest_problem& problem) {
  if (!may_split(problem)) return 0;
  return problem.batch * problem.num_heads_kv * kMostSplits * split_floats(problem);
}

std::int64_t thread_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return kBlockQ * (d + dv + 2) + kBlockK * (d + dv) +
         kPanelLanes * (kBlockK + 1 + std::max(d, dv)) + PanelScores::row_floats(kBlockK);
}

// One block of queries against one part of its keys.
struct Task {
  std::int64_t b, head, first, rows;
  std::int64_t part;
  std::int64_t pairs;  // about so many scores
};

// A panel of the block with its sums.
struct PanelSums {
  QueryPanel panel;
  float *Qt, *O, *m, *l;
};

class Forward {
 public:
  Forward(const attest_forward_args& args, std::int64_t b, TileWords* words)
      : args_(args),
        problem_(*args.problem),
        batch_(batch_of(problem_, b)),
        pages_(pages_of(problem_, b)),
        first_key_(pages_.table == nullptr ? batch_.k_begin : 0),
        scores_(problem_, batch_, args.bias),
        words_(words) {}

  void run(const Task& task, float* shared, Arena arena) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const QueryRows rows(batch_, task.head, task.first, task.rows);
    float* const tile = arena.take(kPanelLanes * std::max(d, dv));
    std::vector<PanelSums> panels;
    panels.reserve(static_cast<std::size_t>(kPanels));
    for (std::int64_t first = 0; first < task.rows; first += kPanelLanes) {
      const QueryPanel panel(problem_, batch_, rows, first);
      const std::int64_t lanes = panel.lanes();
      panels.push_back({panel, arena.take(d * lanes), arena.take(dv * lanes), arena.take(lanes),
                        arena.take(lanes)});
      begin(panels.back(), rows, task.part == 0, tile);
    }
    attend(task, panels, arena);
    if (splits_of(problem_, batch_) == 1) {
      for (const PanelSums& one : panels) finish(one, rows, tile);
      return;
    }
    const PanelSums& one = panels.front();
    const std::int64_t lanes = one.panel.lanes();
    float* const left = part_at(shared, task.head, task.part);
    std::copy_n(one.O, dv * lanes, left);
    std::copy_n(one.m, lanes, left + dv * lanes);
    std::copy_n(one.l, lanes, left + (dv + 1) * lanes);
    words_.write(one.panel.count() * (dv + 2));
  }

  // Merges what the parts of the keys left, in their order.
  void merge(const Task& task, float* shared, Arena arena) const {
    const std::int64_t dv = problem_.head_dim_v, splits = splits_of(problem_, batch_);
    const QueryRows rows(batch_, task.head, task.first, task.rows);
    const QueryPanel panel(problem_, batch_, rows, 0);
    const std::int64_t lanes = panel.lanes();
    float *const tile = arena.take(kPanelLanes * dv), *const O = arena.take(dv * lanes),
                 *const m = arena.take(lanes), *const l = arena.take(lanes),
                 *const weights = arena.take(lanes);
    std::fill(O, O + dv * lanes, 0.0f);
    std::fill(m, m + lanes, kEmpty);
    std::fill(l, l + lanes, 0.0f);
    for (std::int64_t s = 0; s < splits; ++s) {
      const float* const of_part = part_at(shared, task.head, s) + dv * lanes;
      for (std::int64_t lane = 0; lane < lanes; ++lane) m[lane] = std::max(m[lane], of_part[lane]);
    }
    for (std::int64_t s = 0; s < splits; ++s) {
      const float* const left = part_at(shared, task.head, s);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const float shift = m[lane] == kEmpty ? 0.0f : m[lane];
        weights[lane] = std::exp2(left[dv * lanes + lane] - shift);
        l[lane] += left[(dv + 1) * lanes + lane] * weights[lane];
      }
      for (std::int64_t c = 0; c < dv; ++c) {
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          O[c * lanes + lane] += left[c * lanes + lane] * weights[lane];
        }
      }
      words_.read(panel.count() * (dv + 2));
    }
    finish({panel, nullptr, O, m, l}, rows, tile);
  }

 private:
  float* part_at(float* shared, std::int64_t head, std::int64_t part) const {
    const std::int64_t kv_head = batch_.number * problem_.num_heads_kv + head / group_of(problem_);
    return shared + (kv_head * kMostSplits + part) * split_floats(problem_);
  }

  RowBlock tensor_rows(std::int64_t query, std::int64_t count, std::int64_t head) const {
    return {batch_.tensor_batch, batch_.q_begin + query, count, head};
  }

  // Sums before the first key; a sink is in those of the first part.
  void begin(const PanelSums& one, const QueryRows& rows, bool with_sinks, float* tile) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const QueryPanel& panel = one.panel;
    rows.for_runs(panel.first(), panel.count(),
                  [&](std::int64_t head, std::int64_t query, std::int64_t count, std::int64_t row) {
                    load_rows(*args_.Q, tensor_rows(query, count, head),
                              tile + (row - panel.first()) * d);
                  });
    words_.read(panel.count() * d);
    pack_panel(tile, d, panel.count(), d, panel.lanes(), one.Qt);
    std::fill(one.O, one.O + dv * panel.lanes(), 0.0f);
    for (std::int64_t lane = 0; lane < panel.lanes(); ++lane) {
      const bool exists = lane < panel.count() && panel.query(lane) < batch_.queries;
      const float sink = exists && with_sinks ? sink_of(problem_, panel.head(lane)) : kEmpty;
      one.m[lane] = sink * std::numbers::log2e_v<float>;
      one.l[lane] = sink == kEmpty ? 0.0f : 1.0f;
    }
  }

  // The rows of a tile, in `tile` where they are counted, converted or gathered.
  RowsView view(const attest_tensor& tensor, const RowBlock& rows, float* tile) const {
    if (!words_.counts()) return view_rows(tensor, pages_, rows, tile);
    load_rows(tensor, pages_, rows, tile);
    words_.read(rows.count * tensor.shape[3]);
    return {tile, tensor.shape[3]};
  }

  void attend(const Task& task, const std::vector<PanelSums>& panels, Arena arena) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    KeySpan seen{batch_.keys, 0};
    for (const PanelSums& one : panels) {
      seen.begin = std::min(seen.begin, one.panel.seen().begin);
      seen.end = std::max(seen.end, one.panel.seen().end);
    }
    const std::int64_t part = keys_of_split(problem_, batch_);
    const std::int64_t begin = std::max(seen.begin / kBlockK * kBlockK, task.part * part);
    const std::int64_t end = std::min(seen.end, (task.part + 1) * part);
    float *const K_tile = arena.take(kBlockK * d), *const V_tile = arena.take(kBlockK * dv),
                 *const S = arena.take(kBlockK * kPanelLanes),
                 *const rescale = arena.take(kPanelLanes),
                 *const rows = arena.take(PanelScores::row_floats(kBlockK));
    const std::int64_t kv_head = task.head / group_of(problem_);
    for (std::int64_t key = begin; key < end; key += kBlockK) {
      const std::int64_t keys = std::min(kBlockK, batch_.keys - key);
      const RowBlock block{batch_.tensor_batch, first_key_ + key, keys, kv_head};
      const RowsView K = view(*args_.K, block, K_tile);
      RowsView V = view(*args_.V, block, V_tile);
      std::vector<SpecialValue> special;
      if (has_special_values(V, keys, dv)) {
        if (V.data != V_tile) load_rows(*args_.V, pages_, block, V_tile);
        V = {V_tile, dv};
        special = take_special_values(V_tile, keys, dv);
      }
      for (const PanelSums& one : panels) {
        if (!one.panel.sees_some(key, keys)) continue;
        const std::int64_t lanes = one.panel.lanes();
        scores_(one.panel, one.Qt, K, key, keys, rows, S, nullptr);
        update_panel(keys, lanes, S, one.m, one.l, rescale);
        scale_multiply_add({one.O, lanes, {V.data, 1, V.stride}, S, lanes, dv, lanes, keys},
                           rescale);
        if (!special.empty()) add_special(one, special, key, S);
      }
    }
  }

  void add_special(const PanelSums& one, const std::vector<SpecialValue>& special, std::int64_t key,
                   const float* P) const {
    const std::int64_t lanes = one.panel.lanes();
    for (std::int64_t lane = 0; lane < one.panel.count(); ++lane) {
      add_special_values(
          args_, batch_, special,
          {one.panel.head(lane), one.panel.query(lane), key, P + lane, lanes, one.O + lane, lanes});
    }
  }

  // Divides O by l and stores it; LSE = m + log l, -inf where no score was above -inf.
  void finish(const PanelSums& one, const QueryRows& rows, float* tile) const {
    const std::int64_t dv = problem_.head_dim_v, lanes = one.panel.lanes();
    unpack_panel(one.O, lanes, one.panel.count(), dv, tile, dv);
    for (std::int64_t lane = 0; lane < one.panel.count(); ++lane) {
      if (one.l[lane] != 0) scale_row(tile + lane * dv, dv, 1.0f / one.l[lane]);
      one.m[lane] = static_cast<float>(static_cast<double>(one.m[lane]) * std::numbers::ln2 +
                                       std::log(static_cast<double>(one.l[lane])));
    }
    rows.for_runs(one.panel.first(), one.panel.count(),
                  [&](std::int64_t head, std::int64_t query, std::int64_t count, std::int64_t row) {
                    const std::int64_t lane = row - one.panel.first();
                    const RowBlock block = tensor_rows(query, count, head);
                    store_rows(*args_.O, block, tile + lane * dv);
                    words_.write(count * dv);
                    if (args_.LSE == nullptr) return;
                    store_scalars(*args_.LSE, block, one.m + lane);
                    words_.write(count);
                  });
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  Batch batch_;
  PageRow pages_;
  std::int64_t first_key_;
  PanelScores scores_;
  WordCounter words_;
};

// The blocks of queries, the largest first: the last of a causal mask.
std::vector<Task> tasks_of(const attest_problem& problem) {
  std::vector<Task> tasks;
  const std::int64_t group = group_of(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const Batch batch = batch_of(problem, b);
    if (batch.q_length == 0) continue;
    const bool grouped = is_grouped(problem, batch);
    const std::int64_t rows = grouped ? batch.q_length * group : batch.q_length;
    const std::int64_t splits = splits_of(problem, batch);
    for (std::int64_t head = 0; head < problem.num_heads_q; head += grouped ? group : 1) {
      for (std::int64_t first = 0; first < rows; first += kBlockQ) {
        const std::int64_t count = std::min(kBlockQ, rows - first);
        const KeySpan span = grouped ? visible_keys(problem, batch, 0, batch.q_length)
                                     : visible_keys(problem, batch, first, count);
        for (std::int64_t part = 0; part < splits; ++part) {
          tasks.push_back({b, head, first, count, part, count * (span.end - span.begin) / splits});
        }
      }
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& c) { return a.pairs > c.pairs; });
  return tasks;
}

}  // namespace

std::int64_t flash2_forward_floats(const attest_problem& problem) {
  return kLineFloats + shared_floats(problem) +
         std::max(problem.num_threads, 1) * thread_floats(problem);
}

void flash2_forward(const attest_forward_args& args, TileWords* words) {
  const attest_problem& problem = *args.problem;
  const auto floats = static_cast<std::size_t>(thread_floats(problem));
  const std::vector<Task> tasks = tasks_of(problem);
  const auto count = static_cast<std::int64_t>(tasks.size());
  float* const shared = at_line(static_cast<float*>(args.workspace));
  float* const own = shared + shared_floats(problem);
#pragma omp parallel num_threads(words == nullptr ? problem.num_threads : 1)
  {
#pragma omp for schedule(dynamic)
    for (std::int64_t t = 0; t < count; ++t) {
      const Task& task = tasks[static_cast<std::size_t>(t)];
      Forward(args, task.b, words).run(task, shared, Arena(own, floats, omp_get_thread_num()));
    }
#pragma omp for schedule(dynamic)
    for (std::int64_t t = 0; t < count; ++t) {
      const Task& task = tasks[static_cast<std::size_t>(t)];
      if (task.part != 0 || splits_of(problem, batch_of(problem, task.b)) == 1) continue;
      Forward(args, task.b, words).merge(task, shared, Arena(own, floats, omp_get_thread_num()));
    }
  }
}

}  // namespace attest::cpu
