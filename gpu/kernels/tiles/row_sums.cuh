#pragma once

#include "gpu/kernels/tiles/tile.cuh"

/// The online softmax of a warp's rows.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Largest score and sum of exponentials of each row of a warp, the same in all lanes.
template <int kRows>
struct RowStatistics {
  float m[kRows], l[kRows];

  __device__ RowStatistics() {
    for (int r = 0; r < kRows; ++r) {
      m[r] = -INFINITY;
      l[r] = 0;
    }
  }

  /// Begins the first `rows` rows with a key of this score and of value 0; -inf is no key.
  __device__ void begin_with(float sink, std::int64_t rows) {
    for (int r = 0; r < kRows && r < rows; ++r) {
      m[r] = sink;
      l[r] = sink == -INFINITY ? 0 : 1;
    }
  }

  /// Takes a score of row r from each lane in: it becomes its weight. Returns the factor of what
  /// was weighed before.
  __device__ float take(int r, float& score) {
    const float maximum = fmaxf(m[r], warp_max(score));
    const float shift = maximum == -INFINITY ? 0 : maximum;  // exp(-inf) = 0, and a NaN stays
    const float rescale = expf(m[r] - shift);
    score = expf(score - shift);
    l[r] = l[r] * rescale + warp_sum(score);
    m[r] = maximum;
    return rescale;
  }

  __device__ float log_sum(int r) const { return l[r] == 0 ? -INFINITY : m[r] + logf(l[r]); }

  /// Stores LSE of the rows that exist, to (batch, head, row).
  template <class Mem>
  __device__ void store_LSE(Mem& mem, const QueryBlock& block,
                            typename Mem::template Out<float> LSE, const Strides& strides) const {
    for (int r = 0; r < kRows; ++r) {
      const int row = warp_in_block() * kRows + r;
      if (lane_in_warp() != 0 || row >= block.rows.count) continue;
      mem.store(LSE, block.origin(strides) + row * strides.row, log_sum(r));
    }
  }
};

/// Columns lane, lane + 32, … of a warp's rows, those that exist, as a tensor of `T`.
template <class T, int kRows, int kColumns, class Mem>
__device__ void store_rows(Mem& mem, const QueryBlock& block, int first_column, int columns,
                           const float (&values)[kRows][kColumns],
                           typename Mem::template Out<T> tensor, const Strides& strides) {
  ATTEST_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const int row = warp_in_block() * kRows + r;
    if (row >= block.rows.count) continue;
    const std::int64_t origin = block.origin(strides) + row * strides.row;
    ATTEST_UNROLL
    for (int c = 0; c < kColumns; ++c) {
      const int column = first_column + c * 32 + lane_in_warp();
      if (column < columns)
        mem.store(tensor, origin + column * strides.column, rounded<T>(values[r][c]));
    }
  }
}

/// Statistics with the weighted sums of rows of V.
template <int kRows, int kColumns>
struct RowSums : RowStatistics<kRows> {
  float O[kRows][kColumns];

  __device__ RowSums() {
    ATTEST_UNROLL
    for (int r = 0; r < kRows; ++r) {
      ATTEST_UNROLL
      for (int c = 0; c < kColumns; ++c) O[r][c] = 0;
    }
  }

  /// Takes a tile of scores in: they become weights of the tile's rows of V.
  __device__ void take_scores(float (&S)[kRows]) {
    ATTEST_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const float rescale = this->take(r, S[r]);
      ATTEST_UNROLL
      for (int c = 0; c < kColumns; ++c) O[r][c] *= rescale;
    }
  }

  /// Divided by the sums of weights; rows without a key are zero.
  template <class T, class Mem>
  __device__ void store_O(Mem& mem, const QueryBlock& block, int columns,
                          typename Mem::template Out<T> tensor, const Strides& strides) {
    ATTEST_UNROLL
    for (int r = 0; r < kRows; ++r) {
      ATTEST_UNROLL
      for (int c = 0; c < kColumns; ++c) O[r][c] = this->l[r] == 0 ? 0 : O[r][c] / this->l[r];
    }
    store_rows<T>(mem, block, 0, columns, O, tensor, strides);
  }
};

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
