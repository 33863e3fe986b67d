#pragma once

#include "gpu/kernels/emulated/kernel_name.hpp"
#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/row_sums.cuh"

/// Forward with the score matrix in global memory, float32: scores, then O. No tile is as long as a
/// head dimension but a resident block of Q. Every pair is visited, masked or not.
///
/// Grid:   one block for each 32 queries of a (batch, head), all in x; 8 warps of 4 queries each.
///         softmax_rows: one warp for each row.
/// Shared: Q and K (32, 32), rows of odd length, or a resident Q (32, head_dim_qk); then P (32, 32)
///         and V (32, 32 kColumns). softmax_rows: a row of scores.
/// Words:  those of the schedules standard:bm=32,bn=32,bl=32 and hybrid:bq=32,oq=32,ov=128.
///         [gpu/kernels/schedule_words_test]
/// Source: Dao et al. 2022, Algorithm 0; hybrid ours.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Says whether Q passes by with K, 32 columns at a time, or stays for all keys.
enum class Queries : std::uint8_t { streamed, resident };

struct StoredScores {
  static constexpr int kTile = 32, kLanes = 256;
  static constexpr int kRows = kTile / (kLanes / 32);  // of a warp
  static constexpr int kStride = kTile + 1;

  /// Shared memory of store_scores(); `resident` columns of Q stay, 0: they pass by.
  __host__ __device__ static std::int64_t score_floats(int resident) {
    return std::int64_t{kTile} * ((resident > 0 ? odd_stride(resident) : kStride) + kStride);
  }
  /// Shared memory of weigh_values().
  __host__ __device__ static std::int64_t value_floats(int columns) {
    return std::int64_t{kTile} * (kTile + columns * 32);
  }

  static BlockLine score_line(const AttentionShape& shape, Queries queries) {
    return line(shape, score_floats(queries == Queries::resident ? shape.head_dim_qk : 0));
  }
  static BlockLine softmax_line(const AttentionShape& shape) {
    return {shape.batch * shape.num_heads_q * shape.seqlen_q, 32, bytes_of_floats(shape.seqlen_k)};
  }
  static BlockLine value_line(const AttentionShape& shape, int columns) {
    return line(shape, value_floats(columns));
  }

 private:
  static BlockLine line(const AttentionShape& shape, std::int64_t floats) {
    return {blocks_for(shape.seqlen_q, kTile, shape.num_heads_q, shape.batch), kLanes,
            bytes_of_floats(floats)};
  }
};

/// Says whether LSE is stored beside the scores.
enum class ScoreStatistics : std::uint8_t { none, kept };

/// Scores (batch, query head, seqlen_q, seqlen_k), of each sequence its own rows and columns.
template <class Mem>
struct ScoreMatrix {
  typename Mem::template Out<float> S;

  /// Where the scores of a warp's row r and of a tile's first key lie.
  __device__ std::int64_t index(const AttentionShape& shape, const QueryBlock& block, int row,
                                std::int64_t key) const {
    const std::int64_t head = block.entry * shape.num_heads_q + block.head;
    return (head * shape.seqlen_q + block.rows.first + row) * shape.seqlen_k + key;
  }
};

/// S = Q K^T of a block's queries and one tile of keys, in the lanes' registers.
template <Queries kQueries, class Mem>
__device__ void multiply_tile(Mem& mem, const ForwardArguments<Mem>& a, const QueryBlock& block,
                              TileRows keys, float* Q, float* K, float (&S)[StoredScores::kRows]) {
  constexpr int kTile = StoredScores::kTile, kStride = StoredScores::kStride;
  const int dk = a.shape.head_dim_qk, first_row = warp_in_block() * StoredScores::kRows;
  const int stride = kQueries == Queries::resident ? odd_stride(dk) : kStride;
  const std::int64_t origin_k = block.key_origin(a.k) + keys.first * a.k.row;
  for (float& s : S) s = 0;
  for (int c = 0; c < dk; c += kTile) {
    const int columns = min(kTile, dk - c);
    __syncthreads();  // the columns before are no longer read
    if (kQueries == Queries::streamed) {
      load_tile<kTile>(mem, a.Q, a.q, block.origin(a.q) + c * a.q.column, block.rows.count, columns,
                       Q, kStride);
    }
    load_tile<kTile>(mem, a.K, a.k, origin_k + c * a.k.column, keys.count, columns, K, kStride);
    __syncthreads();
    const float* const A = kQueries == Queries::resident ? Q + c : Q;
    add_row_products(A + first_row * stride, stride, K + lane_in_warp() * kStride, columns, S);
  }
}

/// Scores and, if kept, LSE.
template <Queries kQueries, ScoreStatistics kStatistics, class Mem>
__global__ void __launch_bounds__(StoredScores::kLanes, 2)
    store_scores(ForwardArguments<Mem> a, ScoreMatrix<Mem> scores) {
  constexpr int kTile = StoredScores::kTile, kRows = StoredScores::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk;
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, kTile);
  if (block.rows.count > 0) {
    float* const K = shared;
    float* const Q = K + kTile * StoredScores::kStride;
    if (kQueries == Queries::resident) {
      load_tile<kTile>(mem, a.Q, a.q, block.origin(a.q), block.rows.count, dk, Q, odd_stride(dk));
    }
    const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, block.head) : 0;
    RowStatistics<kRows> statistics;
    for (std::int64_t key = 0; key < block.sequence.k_length; key += kTile) {
      const TileRows keys = rows_from(key, block.sequence.k_length, kTile);
      float S[kRows];
      multiply_tile<kQueries>(mem, a, block, keys, Q, K, S);
      finish_scores(mem, a, block, keys, slope, S);
      for (int r = 0; r < kRows; ++r) {
        const int row = warp_in_block() * kRows + r, lane = lane_in_warp();
        if (row < block.rows.count && lane < keys.count) {
          mem.store(scores.S, scores.index(a.shape, block, row, key) + lane, S[r]);
        }
        if (kStatistics == ScoreStatistics::kept) statistics.take(r, S[r]);
      }
    }
    if (kStatistics == ScoreStatistics::kept) statistics.store_LSE(mem, block, a.LSE, a.lse);
  }
  mem.flush();
}

/// Scores become weights that sum to 1 in each row; rows without a key become zeros.
template <class Mem>
__global__ void __launch_bounds__(32)
    softmax_rows(ForwardArguments<Mem> a, ScoreMatrix<Mem> scores) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, row);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, 1);
  if (block.rows.count > 0) {
    const std::int64_t index = scores.index(a.shape, block, 0, 0);
    const int keys = static_cast<int>(block.sequence.k_length), lane = lane_in_warp();
    float maximum = -INFINITY, sum = 0;
    for (int j = lane; j < keys; j += 32) {  // a lane meets its own words only
      row[j] = mem.load(scores.S, index + j);
      maximum = fmaxf(maximum, row[j]);
    }
    maximum = warp_max(maximum);
    const float shift = maximum == -INFINITY ? 0 : maximum;  // exp(-inf) = 0
    for (int j = lane; j < keys; j += 32) sum += row[j] = expf(row[j] - shift);
    sum = warp_sum(sum);
    for (int j = lane; j < keys; j += 32) {
      mem.store(scores.S, index + j, sum == 0 ? 0 : row[j] / sum);
    }
  }
  mem.flush();
}

/// Contents of the score matrix.
enum class Stored : std::uint8_t { weights, scores };

/// O = P V, 32 `kColumns` columns at a time. With stored scores, P is exp(S - LSE) and the sums are
/// divided by those of its rows: LSE is rounded to a word, so these are 1 but for |LSE| roundings.
template <Stored kStored, int kColumns, class Mem>
__global__ void __launch_bounds__(StoredScores::kLanes, 2)
    weigh_values(ForwardArguments<Mem> a, ScoreMatrix<Mem> scores) {
  constexpr int kTile = StoredScores::kTile, kRows = StoredScores::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, kTile);
  const int dv = a.shape.head_dim_v, lane = lane_in_warp(), first_row = warp_in_block() * kRows;
  float* const P = shared;
  float* const V = P + kTile * kTile;
  constexpr int kStrideV = kColumns * 32;
  float LSE[kRows];
  for (int r = 0; r < kRows; ++r) {
    float value = 0;
    if (kStored == Stored::scores && lane == 0 && first_row + r < block.rows.count) {
      value = mem.load(a.LSE, block.origin(a.lse) + (first_row + r) * a.lse.row);
    }
    LSE[r] = __shfl_sync(~0U, value, 0);
  }
  for (int column = 0; column < dv && block.rows.count > 0; column += kStrideV) {
    const int columns = min(kStrideV, dv - column);
    float O[kRows][kColumns] = {}, sums[kRows] = {};
    for (std::int64_t key = 0; key < block.sequence.k_length; key += kTile) {
      const TileRows keys = rows_from(key, block.sequence.k_length, kTile);
      __syncthreads();  // V of the tile before is no longer read
      for (int r = 0; r < kRows; ++r) {
        float p = 0;
        if (first_row + r < block.rows.count && lane < keys.count) {
          p = mem.load(scores.S, scores.index(a.shape, block, first_row + r, key) + lane);
          if (kStored == Stored::scores) p = LSE[r] == -INFINITY ? 0 : expf(p - LSE[r]);
        }
        sums[r] += p;
        P[(first_row + r) * kTile + lane] = p;
      }
      load_rows(mem, a.V, a.v, block.key_origin(a.v) + key * a.v.row + column * a.v.column,
                keys.count, columns, V, kStrideV);
      __syncthreads();
      add_weighted_rows(P + first_row * kTile, kTile, V, kStrideV, keys.count, columns, O);
    }
    for (int r = 0; r < kRows && kStored == Stored::scores; ++r) {
      const float sum = warp_sum(sums[r]);
      ATTEST_UNROLL
      for (int c = 0; c < kColumns; ++c) O[r][c] = sum == 0 ? 0 : O[r][c] / sum;
    }
    store_rows<float>(mem, block, column, dv, O, a.O, a.o);
  }
  mem.flush();
}

template <Queries kQueries, ScoreStatistics kStatistics, class Mem, class Launch>
void launch_scores(const ForwardArguments<Mem>& a, const ScoreMatrix<Mem>& S, Launch&& launch) {
  launch(kernel_name("store_scores", enumerator_name("Queries", kQueries),
                     enumerator_name("ScoreStatistics", kStatistics)),
         StoredScores::score_line(a.shape, kQueries), store_scores<kQueries, kStatistics, Mem>, a,
         S);
}

template <Stored kStored, int kColumns, class Mem, class Launch>
void launch_values(const ForwardArguments<Mem>& a, const ScoreMatrix<Mem>& S, Launch&& launch) {
  launch(kernel_name("weigh_values", enumerator_name("Stored", kStored), kColumns),
         StoredScores::value_line(a.shape, kColumns), weigh_values<kStored, kColumns, Mem>, a, S);
}

/// launch(name, line, kernel, arguments...) for scores, softmax and O in turn.
template <class Mem, class Launch>
void standard_launches(const ForwardArguments<Mem>& a, const ScoreMatrix<Mem>& S, Launch&& launch) {
  launch_scores<Queries::streamed, ScoreStatistics::none>(a, S, launch);
  launch("softmax_rows", StoredScores::softmax_line(a.shape), softmax_rows<Mem>, a, S);
  launch_values<Stored::weights, 1>(a, S, launch);
}

/// For scores with LSE, and O, 128 columns at a time. LSE is not null.
template <class Mem, class Launch>
void hybrid_launches(const ForwardArguments<Mem>& a, const ScoreMatrix<Mem>& S, Launch&& launch) {
  launch_scores<Queries::resident, ScoreStatistics::kept>(a, S, launch);
  launch_values<Stored::scores, 4>(a, S, launch);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
