#include <omp.h>

#include <algorithm>
#include <cmath>

#include "cpu/kernels/arithmetic.hpp"
#include "cpu/kernels/bias.hpp"
#include "cpu/kernels/flash2.hpp"
#include "cpu/kernels/kernel.hpp"
#include "cpu/kernels/score_tile.hpp"
#include "cpu/kernels/tensor_io.hpp"

namespace attest::cpu {
namespace {

// One thread's tiles.
struct Tiles {
  float *Q, *O, *dO, *dQ;        // query block
  float *K, *Kt, *Vt, *dK, *dV;  // key block
  float *P, *slope, *dS, *dBias;
  float *LSE, *dLSE;

  Tiles(const attest_problem& problem, Arena arena) {
    const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
    Q = arena.take(kBlockQ * d), dQ = arena.take(kBlockQ * d);
    O = arena.take(kBlockQ * dv), dO = arena.take(kBlockQ * dv);
    K = arena.take(kBlockK * d), Kt = arena.take(kBlockK * d), dK = arena.take(kBlockK * d);
    Vt = arena.take(kBlockK * dv), dV = arena.take(kBlockK * dv);
    P = arena.take(kBlockQ * kBlockK), slope = arena.take(kBlockQ * kBlockK);
    dS = arena.take(kBlockQ * kBlockK), dBias = arena.take(kBlockQ * kBlockK);
    LSE = arena.take(kBlockQ), dLSE = arena.take(kBlockQ);
    if (!has_slope(problem)) slope = nullptr;
  }
};

class Backward {
 public:
  // `deltas`: of batch entry b, (heads, seqlen_q).
  Backward(const attest_backward_args& args, std::int64_t b, float* deltas, Arena arena)
      : args_(args),
        problem_(*args.problem),
        batch_(batch_of(problem_, b)),
        number_(b),
        deltas_(deltas + b * problem_.num_heads_q * problem_.seqlen_q),
        tiles_(problem_, arena) {}

  // dQ and delta of one query block: keys stream past.
  void query_pass(std::int64_t head, std::int64_t first) {
    if (first >= batch_.q_length) return;
    const std::int64_t d = problem_.head_dim_qk;
    const RowBlock queries = rows_of(head, first);
    load_rows(*args_.dO, queries, tiles_.dO);
    write_deltas(queries, deltas_of(head, first));
    std::fill(tiles_.dQ, tiles_.dQ + queries.count * d, 0.0f);
    const KeySpan span = visible_keys(problem_, batch_, first, queries.count);
    if (span.begin < span.end) {
      load_rows(*args_.Q, queries, tiles_.Q);
      load_scalars(*args_.LSE, queries, tiles_.LSE);
    }
    for (std::int64_t key = span.begin; key < span.end; key += kBlockK) {
      const std::int64_t count = std::min(kBlockK, span.end - key);
      const RowBlock keys = keys_of(kv_head_of(head), key, count);
      load_rows(*args_.K, keys, tiles_.K);
      transpose(tiles_.K, d, count, d, tiles_.Kt);
      load_transposed(*args_.V, keys, tiles_.Vt);
      recompute({head, first, queries.count, key, count}, tiles_.slope);
      multiply_add(tiles_.dQ, d, {tiles_.dS, count, 1}, tiles_.K, d, queries.count, d, count);
    }
    scale_row(tiles_.dQ, queries.count * d, static_cast<float>(problem_.softmax_scale));
    store_rows(*args_.dQ, queries, tiles_.dQ);
  }

  // dK and dV of one key block: the query blocks of all heads of the group stream past.
  void key_pass(std::int64_t kv_head, std::int64_t key) {
    if (key >= batch_.k_length) return;
    const std::int64_t d = problem_.head_dim_qk, dv = problem_.head_dim_v;
    const std::int64_t rows_stored = std::min(kBlockK, batch_.k_length - key);
    // Keys that do not exist are not read; their gradients are 0.
    const std::int64_t count = std::clamp<std::int64_t>(batch_.keys - key, 0, rows_stored);
    std::fill(tiles_.dK, tiles_.dK + rows_stored * d, 0.0f);
    std::fill(tiles_.dV, tiles_.dV + rows_stored * dv, 0.0f);
    load_transposed(*args_.K, keys_of(kv_head, key, count), tiles_.Kt);
    load_transposed(*args_.V, keys_of(kv_head, key, count), tiles_.Vt);
    const std::int64_t group = problem_.num_heads_q / problem_.num_heads_kv;
    for (std::int64_t head = kv_head * group; head < (kv_head + 1) * group; ++head) {
      for (std::int64_t first = 0; first < batch_.q_length; first += kBlockQ) {
        const std::int64_t rows = std::min(kBlockQ, batch_.q_length - first);
        const KeySpan span = visible_keys(problem_, batch_, first, rows);
        if (span.end <= key || span.begin >= key + count) continue;
        const RowBlock queries = rows_of(head, first);
        load_rows(*args_.Q, queries, tiles_.Q);
        load_rows(*args_.dO, queries, tiles_.dO);
        load_scalars(*args_.LSE, queries, tiles_.LSE);
        recompute({head, first, rows, key, count}, tiles_.slope);
        multiply_add(tiles_.dV, dv, {tiles_.P, 1, count}, tiles_.dO, dv, count, dv, rows);
        multiply_add(tiles_.dK, d, {tiles_.dS, 1, count}, tiles_.Q, d, count, d, rows);
      }
    }
    scale_row(tiles_.dK, count * d, static_cast<float>(problem_.softmax_scale));
    const RowBlock keys = keys_of(kv_head, key, rows_stored);
    store_rows(*args_.dK, keys, tiles_.dK);
    store_rows(*args_.dV, keys, tiles_.dV);
  }

  // Adds what this batch entry and one head leave in a block of dBias to the tile of sums, which
  // has one row where all queries share an element, one column where all keys do.
  void bias_pass(std::int64_t head, const BiasBlock& block) {
    const bool every_query = args_.dBias->shape[2] == 1, every_key = args_.dBias->shape[3] == 1;
    const std::int64_t last_query = every_query ? batch_.q_length : block.first + block.rows,
                       last_key = every_key ? batch_.keys : block.key + block.keys;
    for (std::int64_t first = block.first; first < std::min(last_query, batch_.q_length);
         first += kBlockQ) {
      const RowBlock queries = rows_of(head, first);
      const KeySpan span = visible_keys(problem_, batch_, first, queries.count);
      load_rows(*args_.dO, queries, tiles_.dO);
      load_rows(*args_.Q, queries, tiles_.Q);
      load_scalars(*args_.LSE, queries, tiles_.LSE);
      for (std::int64_t key = block.key; key < std::min(last_key, batch_.keys); key += kBlockK) {
        const std::int64_t count = std::min(kBlockK, batch_.keys - key);
        if (span.end <= key || span.begin >= key + count) continue;
        const RowBlock keys = keys_of(kv_head_of(head), key, count);
        load_transposed(*args_.K, keys, tiles_.Kt);
        load_transposed(*args_.V, keys, tiles_.Vt);
        recompute({head, first, queries.count, key, count}, nullptr);
        for (std::int64_t r = 0; r < queries.count; ++r) {
          float* const sums = tiles_.dBias + (every_query ? 0 : r * block.keys);
          for (std::int64_t j = 0; j < count; ++j) {
            sums[every_key ? 0 : j] += tiles_.dS[r * count + j];
          }
        }
      }
    }
  }

  float* bias_sums() const { return tiles_.dBias; }

  // Returns the sum over the rows of a head of what its sink weighs, times delta, which the query
  // passes left.
  float sink_sum(std::int64_t head) {
    float sum = 0;
    for (std::int64_t first = 0; first < batch_.queries; first += kBlockQ) {
      const RowBlock queries = rows_of(head, first);
      load_scalars(*args_.LSE, queries, tiles_.LSE);
      const float* const deltas = deltas_of(head, first);
      const std::int64_t existing = std::min(queries.count, batch_.queries - first);
      float of_block = 0;
      for (std::int64_t r = 0; r < existing; ++r) {
        of_block += std::exp(problem_.sinks[head] - tiles_.LSE[r]) * deltas[r];
      }
      sum += of_block;
    }
    return sum;
  }

 private:
  std::int64_t kv_head_of(std::int64_t head) const {
    return head / (problem_.num_heads_q / problem_.num_heads_kv);
  }

  RowBlock rows_of(std::int64_t head, std::int64_t first) const {
    const std::int64_t rows = std::min(kBlockQ, batch_.q_length - first);
    return {batch_.tensor_batch, batch_.q_begin + first, rows, head};
  }

  float* deltas_of(std::int64_t head, std::int64_t first) const {
    return deltas_ + head * problem_.seqlen_q + first;
  }

  // dO has been loaded.
  void write_deltas(const RowBlock& queries, float* deltas) {
    load_rows(*args_.O, queries, tiles_.O);
    if (args_.dLSE != nullptr) load_scalars(*args_.dLSE, queries, tiles_.dLSE);
    row_deltas(tiles_.dO, tiles_.O, args_.dLSE != nullptr ? tiles_.dLSE : nullptr, queries.count,
               problem_.head_dim_v, deltas);
  }

  RowBlock keys_of(std::int64_t kv_head, std::int64_t key, std::int64_t count) const {
    return {batch_.tensor_batch, batch_.k_begin + key, count, kv_head};
  }

  // P and dS of one tile; `slope` null: dS before the softcap's derivative.
  void recompute(const ScoreBlock& block, const float* slope) {
    const std::int64_t dv = problem_.head_dim_v;
    score_tile(problem_, batch_, block, tiles_.Q, tiles_.Kt, tiles_.P, tiles_.slope);
    if (args_.bias != nullptr) add_bias(*args_.bias, number_, block, tiles_.P);
    probabilities(tiles_.LSE, block.rows, block.keys, tiles_.P);
    std::fill(tiles_.dS, tiles_.dS + block.rows * block.keys, 0.0f);
    multiply_add(tiles_.dS, block.keys, {tiles_.dO, dv, 1}, tiles_.Vt, block.keys, block.rows,
                 block.keys, dv);
    score_gradients(tiles_.P, slope, deltas_of(block.head, block.first), block.rows, block.keys,
                    tiles_.dS);
  }

  const attest_backward_args& args_;
  const attest_problem& problem_;
  Batch batch_;
  std::int64_t number_;
  float* deltas_;
  Tiles tiles_;
};

std::int64_t blocks_of(std::int64_t length, std::int64_t block) {
  return (length + block - 1) / block;
}

// Blocks of dBias, each of which one thread sums up over the axes that it lacks.
class BiasGrid {
 public:
  explicit BiasGrid(const attest_backward_args& args) : problem_(*args.problem) {
    if (args.dBias == nullptr) return;
    std::copy_n(args.dBias->shape, 4, extents_);
    query_blocks_ = blocks_of(extents_[2], kBlockQ);
    key_blocks_ = blocks_of(extents_[3], kBlockK);
  }
  std::int64_t blocks() const { return extents_[0] * extents_[1] * query_blocks_ * key_blocks_; }
  BiasBlock block(std::int64_t number) const {
    BiasBlock block{};
    block.key = number % key_blocks_ * kBlockK;
    block.keys = std::min(kBlockK, extents_[3] - block.key);
    number /= key_blocks_;
    block.first = number % query_blocks_ * kBlockQ;
    block.rows = std::min(kBlockQ, extents_[2] - block.first);
    number /= query_blocks_;
    block.head = number % extents_[1];
    block.batch = number / extents_[1];
    return block;
  }
  std::int64_t first_batch(const BiasBlock& block) const { return block.batch; }
  std::int64_t last_batch(const BiasBlock& block) const {
    return extents_[0] == 1 ? problem_.batch : block.batch + 1;
  }
  std::int64_t first_head(const BiasBlock& block) const { return block.head; }
  std::int64_t last_head(const BiasBlock& block) const {
    return extents_[1] == 1 ? problem_.num_heads_q : block.head + 1;
  }

 private:
  const attest_problem& problem_;
  std::int64_t extents_[4] = {0, 0, 0, 0};
  std::int64_t query_blocks_ = 0, key_blocks_ = 0;
};

}  // namespace

std::int64_t flash2_backward_floats(const attest_problem& problem) {
  const std::int64_t d = problem.head_dim_qk, dv = problem.head_dim_v;
  return kBlockQ * 2 * (d + dv) + kBlockK * (3 * d + 2 * dv) + 4 * kBlockQ * kBlockK + 2 * kBlockQ;
}

std::int64_t flash2_backward_deltas(const attest_problem& problem) {
  return problem.batch * problem.num_heads_q * problem.seqlen_q;
}

void flash2_backward(const attest_backward_args& args) {
  const attest_problem& problem = *args.problem;
  const auto floats = static_cast<std::size_t>(flash2_backward_floats(problem));
  const std::int64_t query_blocks = blocks_of(problem.seqlen_q, kBlockQ);
  const std::int64_t key_blocks = blocks_of(problem.seqlen_k, kBlockK);
#pragma omp parallel num_threads(problem.num_threads)
  {
    float* const deltas = static_cast<float*>(args.workspace);
    const Arena arena(deltas + flash2_backward_deltas(problem), floats, omp_get_thread_num());
#pragma omp for collapse(3) schedule(dynamic)
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t head = 0; head < problem.num_heads_q; ++head) {
        for (std::int64_t block = 0; block < query_blocks; ++block) {
          Backward(args, b, deltas, arena).query_pass(head, block * kBlockQ);
        }
      }
    }
#pragma omp for collapse(3) schedule(dynamic)
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      for (std::int64_t head = 0; head < problem.num_heads_kv; ++head) {
        for (std::int64_t block = 0; block < key_blocks; ++block) {
          Backward(args, b, deltas, arena).key_pass(head, block * kBlockK);
        }
      }
    }
#pragma omp for schedule(dynamic)
    for (std::int64_t head = 0; head < (problem.sinks == nullptr ? 0 : problem.num_heads_q);
         ++head) {
      float sum = 0;
      for (std::int64_t b = 0; b < problem.batch && std::isfinite(problem.sinks[head]); ++b) {
        sum += Backward(args, b, deltas, arena).sink_sum(head);
      }
      store_element(*args.dSinks, head, -sum);
    }
    // Blocks of dBias, where there is one.
    const BiasGrid grid(args);
#pragma omp for schedule(dynamic)
    for (std::int64_t number = 0; number < grid.blocks(); ++number) {
      const BiasBlock block = grid.block(number);
      float* const sums = Backward(args, 0, deltas, arena).bias_sums();
      std::fill(sums, sums + block.rows * block.keys, 0.0f);
      for (std::int64_t b = grid.first_batch(block); b < grid.last_batch(block); ++b) {
        for (std::int64_t head = grid.first_head(block); head < grid.last_head(block); ++head) {
          Backward(args, b, deltas, arena).bias_pass(head, block);
        }
      }
      store_bias(*args.dBias, block, sums);
    }
  }
}

}  // namespace attest::cpu
