#pragma once

#include <algorithm>

#include "gpu/kernels/emulated/kernel_name.hpp"
#include "gpu/kernels/tiles/tile.cuh"

/// Steps of backward kernels with one tile: rows of one side stay in shared memory with sums in
/// registers, rows of the other side pass by.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Warps of 8 rows, fewer where there are no more, share the rows of the sums, `kGroups` such sets
/// of warps their columns: a lane holds its rows by `kColumns` columns, 32 apart, of each sum. More
/// lanes would have too few registers besides.
template <int kResidentRows, int kGroupsOfWarps, int kColumnsOfLane, int kPassingRows>
struct BackwardTile {
  static constexpr int kResident = kResidentRows, kPassing = kPassingRows;
  static constexpr int kColumns = kColumnsOfLane, kGroups = kGroupsOfWarps;
  static constexpr int kRows = kResident < 8 ? kResident : 8;  // of the sums of a warp
  static constexpr int kRowWarps = kResident / kRows;
  static constexpr int kWarps = kRowWarps * kGroups, kLanes = 32 * kWarps;
  static constexpr int kBlocks = 1;
  static constexpr int kPairRows = kResident / kWarps;  // whose pairs a warp forms
  static constexpr int kMostColumns = 32 * kColumns * kGroups;
  static_assert(kPassing <= 32 && kPassing % kRowWarps == 0);

  static std::string name() {
    return kernel_name("BackwardTile", kResident, kGroups, kColumns, kPassing);
  }
};

/// use(tile) with a tile for so many columns, at most kMostBackwardColumns; of wide heads, and by
/// many rows that stay, fewer rows pass at once, for shared memory.
inline constexpr int kMostBackwardColumns = 576;
template <int kResident = 32, class Use>
auto with_backward_tile(int columns, const Use& use) {
  constexpr int kFewer = std::min(kResident, 16), kPassing = kResident > 32 ? kFewer : kResident;
  if (columns <= 32) return use(BackwardTile<kResident, 1, 1, kPassing>{});
  if (columns <= 64) return use(BackwardTile<kResident, 1, 2, kPassing>{});
  if (columns <= 128) return use(BackwardTile<kResident, 1, 4, kPassing>{});
  if (columns <= 256) return use(BackwardTile<kResident, 2, 4, kPassing>{});
  return use(BackwardTile<kResident, 2, kMostBackwardColumns / 64, kFewer>{});
}

/// Where a lane works: pairs of `pair_row` and the rows after it with passing row `lane`; sums of
/// `row` and the rows after it, columns `column`, `column` + 32, ...
struct TileLane {
  int lane, warp, pair_row, row, column;
};

template <class Tile>
__device__ TileLane tile_lane() {
  const int lane = lane_in_warp(), warp = warp_in_block();
  return {lane, warp, warp * Tile::kPairRows, warp % Tile::kRowWarps * Tile::kRows,
          warp / Tile::kRowWarps * Tile::kColumns * 32 + lane};
}

/// P of a pair and the derivative of the loss by its product with the scale left out.
struct PairGradient {
  float P, dS;
  float of_bias = 0;  // dS without the softcap's derivative
};

template <class Mem>
__device__ PairGradient pair_gradient(Mem& mem, const BackwardArguments<Mem>& a,
                                      const Sequence& sequence, std::int64_t head, float slope,
                                      std::int64_t i, std::int64_t j, float product, float dP,
                                      float LSE, float D) {
  if (LSE == -INFINITY || !pair_visible(mem, a.shape, a.mask, sequence, i, j) ||
      !shown_to_head(mem, a.mask, sequence, head, i, j)) {
    return {0, 0};
  }
  Score score = score_of(product, a.shape, slope, i + sequence.shift, j);
  add_bias(mem, a, sequence, head, i, j, score.value);
  const float P = expf(score.value - LSE), of_bias = P * (dP - D);
  return {P, of_bias * score.derivative, of_bias};
}

/// S and dP of the warp's rows into (resident, passing) tiles, where the same lanes make P and dS
/// of them one by one: kept in registers they would need more than there are beside the sums.
template <class Tile>
__device__ void leave_products(const float (&S)[Tile::kPairRows],
                               const float (&dP)[Tile::kPairRows], const TileLane& at, float* P,
                               float* dS) {
  if (at.lane >= Tile::kPassing) return;
  for (int r = 0; r < Tile::kPairRows; ++r) {
    P[(at.pair_row + r) * Tile::kPassing + at.lane] = S[r];
    dS[(at.pair_row + r) * Tile::kPassing + at.lane] = dP[r];
  }
}

template <int kRows, int kColumns>
__device__ void clear_sums(float (&sums)[kRows][kColumns]) {
  for (int r = 0; r < kRows; ++r) {
    ATTEST_UNROLL
    for (int c = 0; c < kColumns; ++c) sums[r][c] = 0;
  }
}

/// sums(r, c) += sum over passing rows k of W(r, k) X(k, c), W (resident, passing).
template <class Tile>
__device__ void add_weighted(const float* W, const float* X, int count, int columns, int stride,
                             const TileLane& at, float (&sums)[Tile::kRows][Tile::kColumns]) {
  ATTEST_UNROLL
  for (int c = 0; c < Tile::kColumns; ++c) {
    const int column = at.column + c * 32;
    if (column >= columns) continue;
    for (int k = 0; k < count; ++k) {
      const float x = X[k * stride + column];
      for (int r = 0; r < Tile::kRows; ++r) {
        sums[r][c] += W[(at.row + r) * Tile::kPassing + k] * x;
      }
    }
  }
}

/// The sums, times a factor, over a resident tile that is no longer read.
template <class Tile>
__device__ void leave_sums(const float (&sums)[Tile::kRows][Tile::kColumns], float factor,
                           const TileLane& at, float* tile, int columns, int stride) {
  ATTEST_UNROLL
  for (int c = 0; c < Tile::kColumns; ++c) {
    const int column = at.column + c * 32;
    if (column >= columns) continue;
    for (int r = 0; r < Tile::kRows; ++r) {
      tile[(at.row + r) * stride + column] = factor * sums[r][c];
    }
  }
}

/// `count` rows of one head from shared memory, by all lanes of the block.
template <class Mem>
__device__ void store_rows(Mem& mem, typename Mem::template Out<float> tensor,
                           const Strides& strides, std::int64_t origin, int count, int columns,
                           const float* shared, int stride) {
  for (int i = static_cast<int>(threadIdx.x); i < count * columns;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / columns, column = i % columns;
    mem.store(tensor, origin + row * strides.row + column * strides.column,
              shared[row * stride + column]);
  }
}

/// LSE or D of one head's rows into shared memory.
template <class Mem>
__device__ void load_scalars(Mem& mem, typename Mem::template In<float> tensor,
                             const Strides& strides, std::int64_t origin, int count,
                             float* shared) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < count) shared[i] = mem.load(tensor, origin + i * strides.row);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
