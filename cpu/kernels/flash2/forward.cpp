#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include "cpu/kernels/flash2/flash2.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/nonfinite/special_values.hpp"
#include "cpu/kernels/tiles/panel_sums.hpp"
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

// Rows of one K/V head that are few: a panel of any, or a block of those of a decoding step.
bool is_few(std::int64_t queries, std::int64_t group) {
  const std::int64_t rows = queries * group;
  return rows <= kPanelLanes || (queries <= kMostDecoded && rows <= kBlockQ);
}

// Keys of one part where the keys of few queries are split, else all: of the batch entry alone, so
// that neither the other entries nor the threads change a bit.
std::int64_t keys_of_split(const attest_problem& problem, const Batch& batch) {
  if (!is_few(batch.q_length, group_of(problem))) return std::max<std::int64_t>(batch.keys, 1);
  const std::int64_t even = (batch.keys + kMostSplits - 1) / kMostSplits;
  return std::max(kSplitKeys, (even + kBlockK - 1) / kBlockK * kBlockK);
}

std::int64_t splits_of(const attest_problem& problem, const Batch& batch) {
  const std::int64_t keys = keys_of_split(problem, batch);
  return std::max<std::int64_t>((batch.keys + keys - 1) / keys, 1);
}

// Floats of what a part of the keys leaves of a panel: O, m and l.
std::int64_t panel_floats(const attest_problem& problem) {
  return kPanelLanes * (problem.head_dim_v + 2);
}

// The same of all panels that few rows can have.
std::int64_t split_floats(const attest_problem& problem) {
  const std::int64_t rows = std::min(kBlockQ, kMostDecoded * group_of(problem));
  return std::max<std::int64_t>((rows + kPanelLanes - 1) / kPanelLanes, 1) * panel_floats(problem);
}

// Tells whether some batch entry's keys may be split.
bool may_split(const attest_problem& problem) {
  const bool few =
      problem.mask.cu_seqlens_q != nullptr || is_few(problem.seqlen_q, group_of(problem));
  return few && problem.seqlen_k > kSplitKeys;
}

std::int64_t shared_floats(const attest_problem& problem) {
  if (!may_split(problem)) return 0;
  return problem.batch * problem.num_heads_kv * kMostSplits * split_floats(problem);
}

// Floats of a block of keys and of P of a panel in pairs of columns of K and of keys.
struct PairFloats {
  PairFloats(const attest_problem& problem, Terms terms) {
    if (terms == Terms::numbers) return;
    K = kBlockK * ((problem.head_dim_qk + 1) / 2);
    V = kBlockK / 2 * problem.head_dim_v;
    P = kBlockK / 2 * kPanelLanes;
  }
  std::int64_t sum() const { return K + V + P; }

  std::int64_t K = 0, V = 0, P = 0;
};

std::int64_t thread_floats(const attest_problem& problem, Terms terms) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return kBlockQ * (d + dv + 2 + kBlockK + 1) + kBlockK * (d + dv) + kPanelLanes * std::max(d, dv) +
         PanelScores::row_floats(kBlockK) + PairFloats(problem, terms).sum();
}

// One block of queries against one part of its keys, and those of `heads` - 1 groups after it.
struct Task {
  std::int64_t b, head, first, rows;
  std::int64_t part;
  std::int64_t pairs;  // about so many scores
  std::int64_t heads = 1;
};

class Forward {
 public:
  Forward(const attest_forward_args& args, std::int64_t b, Terms terms, MovedWords* words)
      : args_(args),
        problem_(*args.problem),
        batch_(batch_of(problem_, b)),
        pages_(pages_of(problem_, b)),
        first_key_(pages_.table == nullptr ? batch_.k_begin : 0),
        terms_(terms),
        scores_(problem_, batch_, args.bias),
        pass_(args, batch_, words),
        words_(words) {}

  void run(const Task& task, float* shared, Arena arena) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    float* const tile = arena.take(kPanelLanes * std::max(d, dv));
    std::vector<PanelSums> panels;
    panels.reserve(static_cast<std::size_t>(kPanels * task.heads));
    for (std::int64_t turn = 0; turn < task.heads; ++turn) {
      const QueryRows rows = rows_of(task, turn);
      for (std::int64_t first = 0; first < task.rows; first += kPanelLanes) {
        const QueryPanel panel(problem_, batch_, rows, first);
        const std::int64_t lanes = panel.lanes();
        panels.push_back({rows, panel, arena.take(d * lanes), arena.take(dv * lanes),
                          arena.take(lanes), arena.take(lanes)});
        begin(panels.back(), task.part == 0, tile);
      }
    }
    attend(task, panels, arena);
    const bool is_whole = splits_of(problem_, batch_) == 1;
    for (const PanelSums& one : panels) {
      if (is_whole) {
        pass_.finish(one, tile);
      } else {
        leave(one, part_at(shared, one.panel, task.part));
      }
    }
  }

  // Merges what the parts of the keys left, in their order.
  void merge(const Task& task, float* shared, Arena arena) const {
    for (std::int64_t turn = 0; turn < task.heads; ++turn) {
      for (std::int64_t first = 0; first < task.rows; first += kPanelLanes) {
        merge_panel(rows_of(task, turn), first, shared, arena);
      }
    }
  }

 private:
  QueryRows rows_of(const Task& task, std::int64_t turn) const {
    return {batch_, task.head + turn * group_of(problem_), task.first, task.rows};
  }

  void leave(const PanelSums& one, float* left) const {
    const std::int64_t dv = problem_.head_dim_v, lanes = one.panel.lanes();
    std::copy_n(one.O, dv * lanes, left);
    std::copy_n(one.m, lanes, left + dv * lanes);
    std::copy_n(one.l, lanes, left + (dv + 1) * lanes);
    words_.write(one.panel.count() * (dv + 2));
  }

  void merge_panel(const QueryRows& rows, std::int64_t first, float* shared, Arena arena) const {
    const std::int64_t dv = problem_.head_dim_v, splits = splits_of(problem_, batch_);
    const QueryPanel panel(problem_, batch_, rows, first);
    const std::int64_t lanes = panel.lanes();
    float *const tile = arena.take(kPanelLanes * dv), *const O = arena.take(dv * lanes),
                 *const m = arena.take(lanes), *const l = arena.take(lanes),
                 *const weights = arena.take(lanes);
    const PanelSums sums{rows, panel, nullptr, O, m, l};
    std::fill(O, O + dv * lanes, 0.0f);
    std::fill(m, m + lanes, kEmpty);
    std::fill(l, l + lanes, 0.0f);
    for (std::int64_t s = 0; s < splits; ++s) {
      const float* const of_part = part_at(shared, panel, s) + dv * lanes;
      for (std::int64_t lane = 0; lane < lanes; ++lane) m[lane] = std::max(m[lane], of_part[lane]);
    }
    for (std::int64_t s = 0; s < splits; ++s) {
      const float* const left = part_at(shared, panel, s);
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        const float shift = m[lane] == kEmpty ? 0.0f : m[lane];
        weights[lane] = std::exp2(left[dv * lanes + lane] - shift);
        l[lane] += left[(dv + 1) * lanes + lane] * weights[lane];
      }
      for (std::int64_t lane = 0; lane < panel.count(); ++lane) {
        for (std::int64_t c = 0; c < dv; ++c) {
          const std::int64_t at = lane * sums.row_stride(dv) + c * sums.column_stride();
          O[at] += left[at] * weights[lane];
        }
      }
      words_.read(panel.count() * (dv + 2));
    }
    pass_.finish(sums, tile);
  }

  float* part_at(float* shared, const QueryPanel& panel, std::int64_t part) const {
    const std::int64_t kv_head =
        batch_.number * problem_.num_heads_kv + panel.head(0) / group_of(problem_);
    return shared + (kv_head * kMostSplits + part) * split_floats(problem_) +
           panel.first() / kPanelLanes * panel_floats(problem_);
  }

  // Sums before the first key; a sink is in those of the first part.
  void begin(const PanelSums& one, bool with_sinks, float* tile) const {
    pass_.begin(one, tile);
    if (is_in_pairs(one)) {
      const std::int64_t lanes = one.panel.lanes();
      pair_rows(one.Qt, lanes, problem_.head_dim_qk, lanes, one.Qt);
    }
    for (std::int64_t lane = 0; with_sinks && lane < one.panel.count(); ++lane) {
      const float sink = sink_of(problem_, one.panel.head(lane));
      if (sink == kEmpty || one.panel.query(lane) >= batch_.queries) continue;
      one.m[lane] = sink * std::numbers::log2e_v<float>;
      one.l[lane] = 1;
    }
  }

  // Tells whether the panel's products are those of pairs. A single panel is worked through by
  // attend_heads, where memory is waited for.
  bool is_in_pairs(const PanelSums& one) const {
    return terms_ == Terms::pairs && one.rows.count() > kPanelLanes && !one.panel.is_few();
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
    const PairFloats pairs(problem_, terms_);
    const Tiles tiles{arena.take(kBlockK * d),
                      arena.take(kBlockK * dv),
                      arena.take(kBlockK * kBlockQ),
                      arena.take(kBlockQ),
                      arena.take(PanelScores::row_floats(kBlockK)),
                      arena.take(pairs.K),
                      arena.take(pairs.V),
                      arena.take(pairs.P)};
    const bool is_panel_for_head = static_cast<std::int64_t>(panels.size()) == task.heads;
    for (std::int64_t key = begin; key < end; key += kBlockK) {
      const std::int64_t kv_head = task.head / group_of(problem_);
      const RowBlock block{batch_.tensor_batch, first_key_ + key,
                           std::min(kBlockK, batch_.keys - key), kv_head};
      if (is_panel_for_head) {
        attend_heads(panels, key, block, tiles);
      } else {
        attend_panels(panels, key, block, tiles);
      }
    }
  }

  // Space of a thread: a block of keys, its scores, what O of before is multiplied by, rows of
  // scores, and in pairs the block and P of a panel.
  struct Tiles {
    float *K, *V, *S, *rescale, *rows, *K_pairs, *V_pairs, *P_pairs;
  };

  // Rows of V with 0 in the place of what is not finite.
  struct Values {
    RowsView rows;
    std::vector<SpecialValue> special;
  };

  Values values(const RowBlock& block, float* tile) const {
    const std::int64_t dv = problem_.head_dim_v;
    const RowsView V = view(*args_.V, block, tile);
    if (!has_special_values(V, block.count, dv)) return {V, {}};
    if (V.data != tile) load_rows(*args_.V, pages_, block, tile);
    return {{tile, dv}, take_special_values(tile, block.count, dv)};
  }

  // Many queries of one head: panel after panel while the block of keys is near.
  void attend_panels(const std::vector<PanelSums>& panels, std::int64_t key, const RowBlock& block,
                     const Tiles& tiles) const {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const bool has_pairs = is_in_pairs(panels.front()), has_numbers = !is_in_pairs(panels.back());
    RowsView K{tiles.K, d}, K_pairs{}, V_pairs{tiles.V_pairs, dv, true};
    if (has_pairs) {
      K_pairs = load_column_pairs(*args_.K, pages_, block, tiles.K_pairs,
                                  has_numbers ? tiles.K : nullptr);
      words_.read(block.count * d);
    } else {
      K = view(*args_.K, block, tiles.K);
    }
    const Values V = values(block, tiles.V);
    if (has_pairs) pair_rows(V.rows.data, dv, block.count, dv, tiles.V_pairs);
    for (const PanelSums& one : panels) {
      if (!one.panel.sees_some(key, block.count)) continue;
      const std::int64_t lanes = one.panel.lanes();
      const bool in_pairs = is_in_pairs(one);
      scores_(one.panel, one.Qt, in_pairs ? K_pairs : K, key, block.count, tiles.rows, tiles.S,
              nullptr);
      update_panel(block.count, lanes, tiles.S, one.m, one.l, tiles.rescale);
      if (in_pairs) pair_rows(tiles.S, lanes, block.count, lanes, tiles.P_pairs);
      pass_.add_values(one, in_pairs ? V_pairs : V.rows, block.count,
                       in_pairs ? tiles.P_pairs : tiles.S, tiles.rescale);
      add_specials(one, V, key, tiles.S);
    }
  }

  // Few queries wait for memory: the rows of K of all heads are fetched in the order in which they
  // lie, then those of V.
  void attend_heads(const std::vector<PanelSums>& panels, std::int64_t key, const RowBlock& block,
                    const Tiles& tiles) const {
    const auto heads = static_cast<std::int64_t>(panels.size());
    RowBlock of_head = block;
    std::int64_t lane = 0;
    fetch_rows(*args_.K, pages_, block, heads);
    for (const PanelSums& one : panels) {
      float* const S = tiles.S + kBlockK * lane;
      scores_(one.panel, one.Qt, view(*args_.K, of_head, tiles.K), key, block.count, tiles.rows, S,
              nullptr);
      update_panel(block.count, one.panel.lanes(), S, one.m, one.l, tiles.rescale + lane);
      lane += one.panel.lanes();
      ++of_head.head;
    }
    of_head = block;
    lane = 0;
    fetch_rows(*args_.V, pages_, block, heads);
    for (const PanelSums& one : panels) {
      const Values V = values(of_head, tiles.V);
      float* const P = tiles.S + kBlockK * lane;
      pass_.add_values(one, V.rows, block.count, P, tiles.rescale + lane);
      add_specials(one, V, key, P);
      lane += one.panel.lanes();
      ++of_head.head;
    }
  }

  // O += P times what is not finite in V.
  void add_specials(const PanelSums& one, const Values& V, std::int64_t key, const float* P) const {
    const std::int64_t dv = problem_.head_dim_v, lanes = one.panel.lanes();
    for (std::int64_t lane = 0; lane < one.panel.count() && !V.special.empty(); ++lane) {
      add_special_values(args_, batch_, V.special,
                         {one.panel.head(lane), one.panel.query(lane), key, P + lane, lanes,
                          one.O + lane * one.row_stride(dv), one.column_stride()});
    }
  }

  const attest_forward_args& args_;
  const attest_problem& problem_;
  Batch batch_;
  PageRow pages_;
  std::int64_t first_key_;
  Terms terms_;
  PanelScores scores_;
  PanelForward pass_;
  WordCounter words_;
};

// Heads of K and V that a task takes block of keys by block of keys: where their rows lie side by
// side, so that pages of memory are gone through once, and as long as tasks are left for all
// threads.
std::int64_t heads_together(const attest_forward_args& args, std::int64_t rows,
                            std::int64_t splits) {
  const attest_problem& problem = *args.problem;
  const std::int64_t* const strides = args.K->strides;
  if (rows > kPanelLanes || strides[2] >= strides[1]) return 1;
  constexpr std::int64_t kTasksOfThread = 4;
  constexpr std::int64_t kFloats = 131072;  // of a block's K: half of a cache of 1 MB
  const std::int64_t near = kFloats / (kBlockK * std::max(problem.head_dim_qk, problem.head_dim_v));
  const std::int64_t shares = problem.batch * problem.num_heads_kv * splits /
                              (kTasksOfThread * std::max(problem.num_threads, 1));
  return std::clamp<std::int64_t>(std::min(shares, near), 1, kBlockQ / lanes_for(rows));
}

// The blocks of queries, the largest first: the last of a causal mask.
std::vector<Task> tasks_of(const attest_forward_args& args) {
  const attest_problem& problem = *args.problem;
  std::vector<Task> tasks;
  const std::int64_t group = group_of(problem);
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    const Batch batch = batch_of(problem, b);
    if (batch.q_length == 0) continue;
    const bool grouped = is_grouped(problem, batch);
    const std::int64_t rows = grouped ? batch.q_length * group : batch.q_length;
    const std::int64_t splits = splits_of(problem, batch);
    const std::int64_t together = grouped ? heads_together(args, rows, splits) : 1,
                       step = together * (grouped ? group : 1);
    for (std::int64_t head = 0; head < problem.num_heads_q; head += step) {
      const std::int64_t heads =
          std::min(together, (problem.num_heads_q - head) / (step / together));
      for (std::int64_t first = 0; first < rows; first += kBlockQ) {
        const std::int64_t count = std::min(kBlockQ, rows - first);
        const KeySpan span = grouped ? visible_keys(problem, batch, 0, batch.q_length)
                                     : visible_keys(problem, batch, first, count);
        for (std::int64_t part = 0; part < splits; ++part) {
          const std::int64_t pairs = heads * count * (span.end - span.begin) / splits;
          tasks.push_back({b, head, first, count, part, pairs, heads});
        }
      }
    }
  }
  std::stable_sort(tasks.begin(), tasks.end(),
                   [](const Task& a, const Task& c) { return a.pairs > c.pairs; });
  return tasks;
}

}  // namespace

std::int64_t flash2_forward_floats(const attest_problem& problem, Terms terms) {
  return kLineFloats + shared_floats(problem) +
         std::max(problem.num_threads, 1) * thread_floats(problem, terms);
}

void flash2_forward(const attest_forward_args& args, MovedWords* words, Terms terms) {
  const attest_problem& problem = *args.problem;
  const auto floats = static_cast<std::size_t>(thread_floats(problem, terms));
  const std::vector<Task> tasks = tasks_of(args);
  const auto count = static_cast<std::int64_t>(tasks.size());
  float* const shared = at_line(static_cast<float*>(args.workspace));
  float* const own = shared + shared_floats(problem);
#pragma omp parallel num_threads(words == nullptr ? problem.num_threads : 1)
  {
#pragma omp for schedule(dynamic)
    for (std::int64_t t = 0; t < count; ++t) {
      const Task& task = tasks[static_cast<std::size_t>(t)];
      Forward(args, task.b, terms, words)
          .run(task, shared, Arena(own, floats, omp_get_thread_num()));
    }
#pragma omp for schedule(dynamic)
    for (std::int64_t t = 0; t < count; ++t) {
      const Task& task = tasks[static_cast<std::size_t>(t)];
      if (task.part != 0 || splits_of(problem, batch_of(problem, task.b)) == 1) continue;
      Forward(args, task.b, terms, words)
          .merge(task, shared, Arena(own, floats, omp_get_thread_num()));
    }
  }
}

}  // namespace attest::cpu
