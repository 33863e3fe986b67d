#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "cpu/kernels/flash2/bias_grid.hpp"
#include "cpu/kernels/flash2/flash2.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/tiles/query_rows.hpp"
#include "cpu/kernels/tiles/score_panel.hpp"
#include "cpu/kernels/tiles/score_tile.hpp"
#include "cpu/kernels/tiles/tensor_io.hpp"
#include "cpu/kernels/vectors/arithmetic.hpp"
#include "cpu/kernels/vectors/panels.hpp"

namespace attest::cpu {
namespace {

std::int64_t blocks_of(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

// Whole vectors of columns, so that products of rows have no narrow end.
std::int64_t padded(std::int64_t columns) { return blocks_of(columns, kPanelStep) * kPanelStep; }

// One thread's tiles.
struct Tiles {
  float *Q, *Qt, *dO, *dOt;      // a panel of queries, in rows and in lanes
  float *P, *dS, *slope, *rows;  // against kBlockK keys
  float *K, *V, *dK, *dV;        // a block of keys
  float *dQ, *lse, *delta;
  float *sums, *dQ_of_heads;

  static std::int64_t floats(const attest_problem& problem) {
    const std::int64_t d = padded(problem.head_dim_qk), dv = padded(problem.head_dim_v);
    return kPanelLanes * (3 * d + 2 * dv + 2) + 3 * kPanelLanes * kBlockK +
           PanelScores::row_floats(kBlockK) + 2 * kKeyBlock * (d + dv) + kPanelLanes * kBlockK +
           of_heads(problem);
  }
  // dQ of all queries of a group, panel by panel.
  static std::int64_t of_heads(const attest_problem& problem) {
    return group_of(problem) * panels(problem) * panel(problem);
  }
  static std::int64_t panel(const attest_problem& problem) {
    return kPanelLanes * padded(problem.head_dim_qk);
  }
  static std::int64_t panels(const attest_problem& problem) {
    return blocks_of(problem.seqlen_q, kPanelLanes);
  }

  Tiles(const attest_problem& problem, Arena arena) {
    const std::int64_t d = padded(problem.head_dim_qk), dv = padded(problem.head_dim_v);
    Q = arena.take(kPanelLanes * d), Qt = arena.take(kPanelLanes * d);
    dO = arena.take(kPanelLanes * dv), dOt = arena.take(kPanelLanes * dv);
    dQ = arena.take(kPanelLanes * d);
    P = arena.take(kPanelLanes * kBlockK), dS = arena.take(kPanelLanes * kBlockK);
    slope = arena.take(kPanelLanes * kBlockK);
    rows = arena.take(PanelScores::row_floats(kBlockK));
    K = arena.take(kKeyBlock * d), dK = arena.take(kKeyBlock * d);
    V = arena.take(kKeyBlock * dv), dV = arena.take(kKeyBlock * dv);
    lse = arena.take(kPanelLanes), delta = arena.take(kPanelLanes);
    sums = arena.take(kPanelLanes * kBlockK), dQ_of_heads = arena.take(of_heads(problem));
    if (!has_slope(problem)) slope = nullptr;
    std::fill(Q, Q + kPanelLanes * d, 0.0f);  // what pads their rows stays
    std::fill(dO, dO + kPanelLanes * dv, 0.0f);
  }
};

class Backward {
 public:
  // `deltas`: of batch entry b, (heads, seqlen_q).
  Backward(const attest_backward_args& args, std::int64_t b, float* deltas, Arena arena,
           MovedWords* words)
      : args_(args),
        problem_(*args.problem),
        batch_(batch_of(problem_, b)),
        scores_(problem_, batch_, args.bias),
        deltas_(deltas + b * problem_.num_heads_q * problem_.seqlen_q),
        tiles_(problem_, arena),
        words_(words) {}

  // delta of the queries of a panel.
  void write_deltas(std::int64_t head, std::int64_t first) {
    const std::int64_t dv = problem_.head_dim_v;
    const RowBlock queries = rows_of(head, first);
    if (queries.count <= 0) return;
    float *const dO = tiles_.V, *const O = tiles_.dV;  // free yet
    load_rows(*args_.dO, queries, dO);
    load_rows(*args_.O, queries, O);
    if (args_.dLSE != nullptr) load_scalars(*args_.dLSE, queries, tiles_.lse);
    row_deltas(dO, O, args_.dLSE != nullptr ? tiles_.lse : nullptr, queries.count, dv,
               deltas_of(head, first));
    words_.read(queries.count * (2 * dv + (args_.dLSE != nullptr ? 1 : 0)));
    words_.write(queries.count);
  }

  // dQ of a panel of queries: all keys stream past.
  void query_pass(std::int64_t head, std::int64_t first) {
    if (first >= batch_.q_length) return;
    const QueryPanel panel = panel_of(head, first);
    std::fill_n(tiles_.dQ, Tiles::panel(problem_), 0.0f);
    const KeySpan seen = panel.seen();
    if (seen.begin < seen.end) load_panel(panel);
    for (std::int64_t key = seen.begin / kBlockK * kBlockK; key < seen.end; key += kBlockK) {
      const std::int64_t keys = std::min(kBlockK, batch_.keys - key);
      const RowsView K = view(*args_.K, head / group_of(problem_), key, keys, tiles_.K);
      const RowsView V = view(*args_.V, head / group_of(problem_), key, keys, tiles_.V);
      recompute(panel, key, keys, K, V);
      add_query_gradients(panel, K, keys, tiles_.dQ);
    }
    store_query_gradients(panel, tiles_.dQ);
  }

  // dK and dV of a block of keys: the queries of all heads of the group stream past. With
  // `queries_too` their dQ is continued from block to block and stored after the last.
  void key_pass(std::int64_t kv_head, std::int64_t key, bool queries_too) {
    if (key >= batch_.k_length) return;
    const std::int64_t d = padded(problem_.head_dim_qk), dv = padded(problem_.head_dim_v);
    const std::int64_t rows_stored = std::min(kKeyBlock, batch_.k_length - key);
    // Keys that do not exist are not read; their gradients are 0.
    const std::int64_t count = std::clamp<std::int64_t>(batch_.keys - key, 0, rows_stored);
    std::fill(tiles_.dK, tiles_.dK + rows_stored * d, 0.0f);
    std::fill(tiles_.dV, tiles_.dV + rows_stored * dv, 0.0f);
    RowsView K{}, V{};  // read where some query sees the keys
    for (std::int64_t head = kv_head * group_of(problem_);
         head < (kv_head + 1) * group_of(problem_); ++head) {
      for (std::int64_t first = 0; first < batch_.q_length; first += kPanelLanes) {
        const QueryPanel panel = panel_of(head, first);
        if (!panel.sees_some(key, count)) continue;
        if (K.data == nullptr) {
          K = view(*args_.K, kv_head, key, count, tiles_.K);
          V = view(*args_.V, kv_head, key, count, tiles_.V);
        }
        float* const dQ = queries_too ? begin_query_gradients(panel, key) : nullptr;
        load_panel(panel);
        add_block(panel, key, count, K, V, dQ);
        if (queries_too) end_query_gradients(panel, key + count, dQ);
      }
    }
    const RowBlock keys{batch_.tensor_batch, batch_.k_begin + key, rows_stored, kv_head};
    store_rows_apart(*args_.dK, keys, d, tiles_.dK);
    store_rows_apart(*args_.dV, keys, dv, tiles_.dV);
    words_.write(rows_stored * (problem_.head_dim_qk + problem_.head_dim_v));
  }

  // All gradients of a group in one pass over its keys.
  void whole_pass(std::int64_t kv_head) {
    for (std::int64_t key = 0; key < batch_.k_length; key += kKeyBlock) {
      key_pass(kv_head, key, true);
    }
    for (std::int64_t head = kv_head * group_of(problem_);
         head < (kv_head + 1) * group_of(problem_); ++head) {
      for (std::int64_t first = 0; first < batch_.q_length; first += kPanelLanes) {
        const QueryPanel panel = panel_of(head, first);
        if (panel.seen().begin < panel.seen().end) continue;
        std::fill_n(tiles_.dQ, Tiles::panel(problem_), 0.0f);
        store_query_gradients(panel, tiles_.dQ);
      }
    }
  }

  // Adds what this batch entry and one head leave in a block of dBias to the tile of sums, which
  // has one row where all queries share an element, one column where all keys do.
  void bias_pass(std::int64_t head, const BiasBlock& block) {
    const bool every_query = args_.dBias->shape[2] == 1, every_key = args_.dBias->shape[3] == 1;
    const std::int64_t last_query = every_query ? batch_.q_length : block.first + block.rows,
                       last_key = every_key ? batch_.keys : block.key + block.keys;
    for (std::int64_t first = block.first; first < std::min(last_query, batch_.q_length);
         first += kPanelLanes) {
      const QueryPanel panel = panel_of(head, first);
      bool is_loaded = false;
      for (std::int64_t key = block.key; key < std::min(last_key, batch_.keys); key += kBlockK) {
        const std::int64_t count = std::min(kBlockK, batch_.keys - key);
        if (!panel.sees_some(key, count)) continue;
        if (!is_loaded) load_panel(panel);
        is_loaded = true;
        const RowsView K = view(*args_.K, head / group_of(problem_), key, count, tiles_.K);
        const RowsView V = view(*args_.V, head / group_of(problem_), key, count, tiles_.V);
        recompute_unscaled(panel, key, count, K, V);
        for (std::int64_t r = 0; r < panel.count(); ++r) {
          float* const sums = tiles_.sums + (every_query ? 0 : r * block.keys);
          for (std::int64_t j = 0; j < count; ++j) {
            sums[every_key ? 0 : j] += tiles_.dS[j * panel.lanes() + r];
          }
        }
      }
    }
  }

  float* bias_sums() const { return tiles_.sums; }

  // Returns the sum over the rows of a head of what its sink weighs, times delta.
  float sink_sum(std::int64_t head) {
    float sum = 0;
    for (std::int64_t first = 0; first < batch_.queries; first += kPanelLanes) {
      const RowBlock queries = rows_of(head, first);
      load_scalars(*args_.LSE, queries, tiles_.lse);
      const float* const deltas = deltas_of(head, first);
      const std::int64_t existing = std::min(queries.count, batch_.queries - first);
      float of_block = 0;
      for (std::int64_t r = 0; r < existing; ++r) {
        of_block += std::exp(problem_.sinks[head] - tiles_.lse[r]) * deltas[r];
      }
      sum += of_block;
    }
    return sum;
  }

 private:
  RowBlock rows_of(std::int64_t head, std::int64_t first) const {
    const std::int64_t rows = std::min(kPanelLanes, batch_.q_length - first);
    return {batch_.tensor_batch, batch_.q_begin + first, rows, head};
  }

  QueryPanel panel_of(std::int64_t head, std::int64_t first) const {
    const QueryRows rows(batch_, head, first, std::min(kPanelLanes, batch_.q_length - first));
    return {problem_, batch_, rows, 0};
  }

  float* deltas_of(std::int64_t head, std::int64_t first) const {
    return deltas_ + head * problem_.seqlen_q + first;
  }

  RowsView view(const attest_tensor& tensor, std::int64_t kv_head, std::int64_t key,
                std::int64_t count, float* tile) const {
    const RowBlock rows{batch_.tensor_batch, batch_.k_begin + key, count, kv_head};
    if (!words_.counts()) return view_rows(tensor, {nullptr, 0}, rows, tile);
    load_rows(tensor, rows, tile);
    words_.read(count * tensor.shape[3]);
    return {tile, tensor.shape[3]};
  }

  // Q, dO, LSE and delta of a panel; lanes without a query weigh nothing.
  void load_panel(const QueryPanel& panel) {
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const RowBlock queries = rows_of(panel.head(0), panel.query(0));
    load_rows_apart(*args_.Q, queries, padded(d), tiles_.Q);
    load_rows_apart(*args_.dO, queries, padded(dv), tiles_.dO);
    pack_panel(tiles_.Q, padded(d), panel.count(), d, panel.lanes(), tiles_.Qt);
    pack_panel(tiles_.dO, padded(dv), panel.count(), dv, panel.lanes(), tiles_.dOt);
    std::fill_n(tiles_.lse, kPanelLanes, -std::numeric_limits<float>::infinity());
    std::fill_n(tiles_.delta, kPanelLanes, 0.0f);
    load_scalars(*args_.LSE, queries, tiles_.lse);
    scale_row(tiles_.lse, kPanelLanes, std::numbers::log2e_v<float>);
    std::copy_n(deltas_of(panel.head(0), panel.query(0)), panel.count(), tiles_.delta);
    words_.read(panel.count() * (d + dv + 2));
  }

  // P and dS of a tile, dS with the softmax scale and the softcap's derivative.
  void recompute(const QueryPanel& panel, std::int64_t key, std::int64_t keys, const RowsView& K,
                 const RowsView& V) {
    recompute_as(panel, key, keys, K, V, static_cast<float>(problem_.softmax_scale), tiles_.slope);
    if (tiles_.slope == nullptr) return;
    const std::int64_t count = keys * panel.lanes();
    for (std::int64_t e = 0; e < count; ++e) tiles_.dS[e] *= tiles_.slope[e];
  }

  // P and dS of a tile, dS with neither.
  void recompute_unscaled(const QueryPanel& panel, std::int64_t key, std::int64_t keys,
                          const RowsView& K, const RowsView& V) {
    recompute_as(panel, key, keys, K, V, 1, nullptr);
  }

  void recompute_as(const QueryPanel& panel, std::int64_t key, std::int64_t keys, const RowsView& K,
                    const RowsView& V, float factor, float* slope) {
    const std::int64_t lanes = panel.lanes(), dv = problem_.head_dim_v;
    scores_(panel, tiles_.Qt, K, key, keys, tiles_.rows, tiles_.P, slope);
    multiply({tiles_.dS, lanes, {V.data, V.stride, 1}, tiles_.dOt, lanes, keys, lanes, dv}, 1);
    gradient_panel(keys, lanes, tiles_.lse, tiles_.delta, factor, tiles_.P, tiles_.dS);
  }

  // Adds a panel's part to dK, dV and, where not null, dQ, some keys of the block at a time.
  void add_block(const QueryPanel& panel, std::int64_t key, std::int64_t count, const RowsView& K,
                 const RowsView& V, float* dQ) {
    const std::int64_t d = padded(problem_.head_dim_qk), dv = padded(problem_.head_dim_v);
    for (std::int64_t j = 0; j < count; j += kBlockK) {
      const std::int64_t keys = std::min(kBlockK, count - j), lanes = panel.lanes();
      if (!panel.sees_some(key + j, keys)) continue;
      const RowsView some_K{K.data + j * K.stride, K.stride};
      recompute(panel, key + j, keys, some_K, {V.data + j * V.stride, V.stride});
      multiply_add(
          {tiles_.dV + j * dv, dv, {tiles_.P, lanes, 1}, tiles_.dO, dv, keys, dv, panel.count()});
      multiply_add(
          {tiles_.dK + j * d, d, {tiles_.dS, lanes, 1}, tiles_.Q, d, keys, d, panel.count()});
      if (dQ != nullptr) add_query_gradients(panel, some_K, keys, dQ);
    }
  }

  // dQ(d, lanes) += K^T dS.
  void add_query_gradients(const QueryPanel& panel, const RowsView& K, std::int64_t keys,
                           float* dQ) const {
    const std::int64_t lanes = panel.lanes();
    multiply_add(
        {dQ, lanes, {K.data, 1, K.stride}, tiles_.dS, lanes, problem_.head_dim_qk, lanes, keys});
  }

  // Returns dQ of a panel as the keys before `key` left it.
  float* begin_query_gradients(const QueryPanel& panel, std::int64_t key) const {
    const std::int64_t head = panel.head(0) % group_of(problem_);
    float* const dQ =
        tiles_.dQ_of_heads +
        (head * Tiles::panels(problem_) + panel.query(0) / kPanelLanes) * Tiles::panel(problem_);
    if (panel.seen().begin >= key) {
      std::fill_n(dQ, Tiles::panel(problem_), 0.0f);
    } else {
      words_.read(panel.count() * problem_.head_dim_qk);
    }
    return dQ;
  }

  void end_query_gradients(const QueryPanel& panel, std::int64_t key, const float* dQ) {
    if (panel.seen().end <= key) return store_query_gradients(panel, dQ);
    words_.write(panel.count() * problem_.head_dim_qk);
  }

  void store_query_gradients(const QueryPanel& panel, const float* dQ) {
    const std::int64_t d = problem_.head_dim_qk;
    unpack_panel(dQ, panel.lanes(), panel.count(), d, tiles_.Qt, d);  // no more in use
    store_rows(*args_.dQ, rows_of(panel.head(0), panel.query(0)), tiles_.Qt);
    words_.write(panel.count() * d);
  }

  const attest_backward_args& args_;
  const attest_problem& problem_;
  Batch batch_;
  PanelScores scores_;
  float* deltas_;
  Tiles tiles_;
  WordCounter words_;
};

std::int64_t deltas_floats(const attest_problem& problem) {
  return padded(problem.batch * problem.num_heads_q * problem.seqlen_q);
}

}  // namespace

std::int64_t flash2_backward_floats(const attest_problem& problem) {
  return kLineFloats + deltas_floats(problem) +
         Tiles::floats(problem) * std::max(problem.num_threads, 1);
}

void flash2_backward(const attest_backward_args& args, MovedWords* words) {
  const attest_problem& problem = *args.problem;
  const auto floats = static_cast<std::size_t>(Tiles::floats(problem));
  const std::int64_t panels = Tiles::panels(problem);
  const std::int64_t key_blocks = blocks_of(problem.seqlen_k, kKeyBlock);
  const std::int64_t threads = words == nullptr ? problem.num_threads : 1;
  // One pass has a task for each group; the bits are those of two.
  const bool one_pass = threads <= problem.batch * problem.num_heads_kv;
#pragma omp parallel num_threads(static_cast <int>(threads))
  {
    float* const deltas = at_line(static_cast<float*>(args.workspace));
    const Arena arena(deltas + deltas_floats(problem), floats, omp_get_thread_num());
#pragma omp for collapse(3) schedule(dynamic)
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
        for (std::int64_t panel = 0; panel < panels; ++panel) {
          Backward(args, b, deltas, arena, words).write_deltas(head, panel * kPanelLanes);
        }
      }
    }
    if (one_pass) {
#pragma omp for collapse(2) schedule(dynamic)
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t head = 0; head < problem.num_heads_kv; ++head) {
          Backward(args, b, deltas, arena, words).whole_pass(head);
        }
      }
    } else {
#pragma omp for collapse(3) schedule(dynamic)
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
          for (std::int64_t panel = 0; panel < panels; ++panel) {
            // The last of a causal mask see most keys.
            Backward(args, b, deltas, arena, words)
                .query_pass(head, (panels - 1 - panel) * kPanelLanes);
          }
        }
      }
#pragma omp for collapse(3) schedule(dynamic)
      for (std::int64_t b = 0; b < problem.batch; ++b) {
        for (std::int64_t head = 0; head < problem.num_heads_kv; ++head) {
          for (std::int64_t block = 0; block < key_blocks; ++block) {
            Backward(args, b, deltas, arena, words).key_pass(head, block * kKeyBlock, false);
          }
        }
      }
    }
#pragma omp for schedule(dynamic)
    for (std::int64_t head = 0; head < (problem.sinks == nullptr ? 0 : problem.num_heads_q);
         ++head) {
      float sum = 0;
      for (std::int64_t b = 0; b < problem.batch && std::isfinite(problem.sinks[head]); ++b) {
        sum += Backward(args, b, deltas, arena, words).sink_sum(head);
      }
      store_element(*args.dSinks, head, -sum);
    }
    // Blocks of dBias, where there is one.
    const BiasGrid grid(args, kPanelLanes, kBlockK);
#pragma omp for schedule(dynamic)
    for (std::int64_t number = 0; number < grid.blocks(); ++number) {
      const BiasBlock block = grid.block(number);
      float* const sums = Backward(args, 0, deltas, arena, words).bias_sums();
      std::fill(sums, sums + block.rows * block.keys, 0.0f);
      for (std::int64_t b = grid.first_batch(block); b < grid.last_batch(block); ++b) {
        for (std::int64_t head = grid.first_head(block); head < grid.last_head(block); ++head) {
          Backward(args, b, deltas, arena, words).bias_pass(head, block);
        }
      }
      store_bias(*args.dBias, block, sums);
    }
  }
}

}  // namespace attest::cpu
