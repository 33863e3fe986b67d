#pragma once

#include "gpu/kernels/square_tiled/square_product.cuh"

/// Softmax of rows whose scores S lie in global memory, made by square tiles: f = exp(S - LSE).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Largest score and sum of exponentials of the lane's rows, the same in all lanes that share them.
template <class Tile>
struct SquareStatistics {
  float m[Tile::kRows], l[Tile::kRows];

  __device__ SquareStatistics() {
    for (int r = 0; r < Tile::kRows; ++r) {
      m[r] = -INFINITY;
      l[r] = 0;
    }
  }

  /// Takes a tile of scores in, -inf where there is none.
  __device__ void take(const SquareSums<Tile>& scores) {
    ATTEST_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      float maximum = m[r], sum = 0;
      for (const float score : scores[r]) maximum = fmaxf(maximum, row_max<Tile>(score));
      const float shift = maximum == -INFINITY ? 0 : maximum;  // exp(-inf) = 0, and a NaN stays
      for (const float score : scores[r]) sum += expf(score - shift);
      l[r] = l[r] * expf(m[r] - shift) + row_sum<Tile>(sum);
      m[r] = maximum;
    }
  }

  /// store(row, LSE) for each row of the block's `rows` by one of its lanes.
  template <class Store>
  __device__ void for_LSE(int rows, const Store& store) const {
    const SquareLane at = square_lane<Tile>();
    ATTEST_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      if (at.column == 0 && at.row + r < rows) {
        store(at.row + r, l[r] == 0 ? -INFINITY : m[r] + logf(l[r]));
      }
    }
  }
};

/// f = exp(S - LSE) of a block's rows, 0 in a row without a key.
template <class Pointer>
struct WeightView {
  MatrixView<Pointer> S;
  const float* LSE;  // of rows `first`, `first` + 1, ...
  std::int64_t first;

  __device__ bool rows_adjoin() const { return S.rows_adjoin(); }
  template <class Mem>
  __device__ float load(Mem& mem, std::int64_t i, std::int64_t j) const {
    const float score = S.load(mem, i, j), log_sum = LSE[i - first];
    return log_sum == -INFINITY ? 0 : expf(score - log_sum);
  }
};

/// f V with f divided by its row sums, which the rounding of LSE keeps from being 1:
/// finish(place, sums) takes tile after tile.
template <class Tile, class Mem, class Pointer, class V, class Finish>
__device__ void weigh_rows(Mem& mem, const WeightView<Pointer>& weights, const V& values, int rows,
                           std::int64_t keys, std::int64_t columns, float* panels,
                           const Finish& finish) {
  const SquareLane at = square_lane<Tile>();
  for (std::int64_t column = 0; column < columns; column += Tile::kSide) {
    const SquarePlace place{weights.first, column, rows, tile_extent<Tile>(column, columns)};
    SquareSums<Tile> sums = {};
    float totals[Tile::kRows] = {};
    add_product<Tile>(mem, weights, values, place, keys, panels, sums,
                      [&](const float* f, int depth) {
                        for (int k = 0; k < depth; ++k) {
                          ATTEST_UNROLL
                          for (int r = 0; r < Tile::kRows; ++r) {
                            totals[r] += Tile::get(f, at.row + r, k);
                          }
                        }
                      });
    ATTEST_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      for (float& sum : sums[r]) sum = totals[r] == 0 ? 0 : sum / totals[r];
    }
    finish(place, sums);
  }
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
