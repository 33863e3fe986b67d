#pragma once

#include "gpu/kernels/loss.cuh"

/// The loss gradient by square tiles of 32 x 32, S and then p in global memory: for fast memory
/// below head_dim^2 words. No atomic addition: equal calls give equal bits.
///
/// Grid:   products: a block for each tile of C; else a block for each 32 rows.
/// Shared: two panels (32, 32) and 64 words.
/// Words:  of the schedule loss_small:b=32 for dX; dY takes Z = f A3 and Z^T c besides.
///         [gpu/kernels/loss_test "words"]
/// Source: Li et al. 2024, Algorithm 6.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1)
    loss_small_product(ProductArguments<Mem> a) {
  constexpr int kSide = SquareTile::kSide;
  Mem mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  const std::int64_t across = (a.columns + kSide - 1) / kSide;
  const std::int64_t row = blockIdx.x / across * kSide, column = blockIdx.x % across * kSide;
  const SquarePlace place{row, column, tile_extent(row, a.rows), tile_extent(column, a.columns)};
  float sums[SquareTile::kRows] = {};
  add_product(mem, a.A, a.B, place, a.inner, panels, sums);
  for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
    mem.store(a.C.data, a.C.at(i, j), sums[r]);
  });
  mem.flush();
}

/// S = QX A2^T and LSE.
template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1) loss_small_scores(LossArguments<Mem> a) {
  constexpr int kSide = SquareTile::kSide, kRows = SquareTile::kRows;
  Mem mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  const std::int64_t first = std::int64_t{blockIdx.x} * kSide;
  const int rows = tile_extent(first, a.n);
  const SquareLane at = square_lane();
  float m[kRows], l[kRows];
  for (int r = 0; r < kRows; ++r) {
    m[r] = -INFINITY;
    l[r] = 0;
  }
  for (std::int64_t key = 0; key < a.n; key += kSide) {
    const SquarePlace place{first, key, rows, tile_extent(key, a.n)};
    float sums[kRows] = {};
    add_product(mem, a.QX, a.A2.transposed(), place, a.d, panels, sums);
    for (int r = 0; r < kRows; ++r) {
      const float score = at.column < place.columns ? sums[r] : -INFINITY;
      const float maximum = fmaxf(m[r], warp_max(score));
      l[r] = l[r] * expf(m[r] - maximum) + warp_sum(expf(score - maximum));
      m[r] = maximum;
    }
    for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
      mem.store(a.S.data, a.S.at(i, j), sums[r]);
    });
  }
  for (int r = 0; r < kRows; ++r) {
    if (at.column == 0 && at.row + r < rows) {
      mem.store(a.LSE, first + at.row + r, m[r] + logf(l[r]));
    }
  }
  mem.flush();
}

/// f = exp(S - LSE) of a block's rows.
template <class Pointer>
struct WeightView {
  MatrixView<Pointer> S;
  const float* LSE;  // of rows `first`, `first` + 1, ...
  std::int64_t first;

  __device__ bool rows_adjoin() const { return S.rows_adjoin(); }
  template <class Mem>
  __device__ float load(Mem& mem, std::int64_t i, std::int64_t j) const {
    return expf(S.load(mem, i, j) - LSE[i - first]);
  }
};

/// f V with f divided by its row sums, which the rounding of LSE keeps from being 1:
/// finish(r, i, j, value) takes each element that the lane has.
template <class Mem, class V, class Finish>
__device__ void weigh_rows(Mem& mem, const LossArguments<Mem>& a, const V& values,
                           std::int64_t first, int rows, float* panels, float* LSE,
                           const Finish& finish) {
  constexpr int kSide = SquareTile::kSide, kRows = SquareTile::kRows;
  const SquareLane at = square_lane();
  const int i = static_cast<int>(threadIdx.x);
  if (i < rows) LSE[i] = mem.load(a.LSE, first + i);
  const WeightView<typename Mem::template Out<float>> weights{a.S, LSE, first};
  for (int column = 0; column < a.d; column += kSide) {
    const SquarePlace place{first, column, rows, tile_extent(column, a.d)};
    float sums[kRows] = {}, totals[kRows] = {};
    add_product(mem, weights, values, place, a.n, panels, sums, [&](const float* f, int depth) {
      for (int k = 0; k < depth; ++k) {
        for (int r = 0; r < kRows; ++r) {
          totals[r] += f[(at.row + r) * SquareTile::kStride + k];
        }
      }
    });
    for_elements(place, [&](int r, std::int64_t row, std::int64_t j) {
      finish(r, row, j, sums[r] / totals[r]);
    });
  }
}

/// c = f h - E and D = rowsum(c o f h).
template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1) loss_small_residual(LossArguments<Mem> a) {
  constexpr int kRows = SquareTile::kRows;
  Mem mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  ATTEST_SHARED(float, LSE, [SquareTile::kSide]);
  const std::int64_t first = std::int64_t{blockIdx.x} * SquareTile::kSide;
  const int rows = tile_extent(first, a.n);
  float D[kRows] = {};
  weigh_rows(mem, a, a.h, first, rows, panels, LSE,
             [&](int r, std::int64_t i, std::int64_t j, float weighed) {
               const float c = weighed - a.E.load(mem, i, j);
               mem.store(a.c.data, a.c.at(i, j), c);
               D[r] += c * weighed;
             });
  const SquareLane at = square_lane();
  for (int r = 0; r < kRows; ++r) {
    const float sum = warp_sum(D[r]);
    if (at.column == 0 && at.row + r < rows) mem.store(a.D, first + at.row + r, sum);
  }
  mem.flush();
}

/// Z = f A3.
template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1) loss_small_weigh(LossArguments<Mem> a) {
  Mem mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  ATTEST_SHARED(float, LSE, [SquareTile::kSide]);
  const std::int64_t first = std::int64_t{blockIdx.x} * SquareTile::kSide;
  weigh_rows(mem, a, a.A3, first, tile_extent(first, a.n), panels, LSE,
             [&](int, std::int64_t i, std::int64_t j, float weighed) {
               mem.store(a.Z.data, a.Z.at(i, j), weighed);
             });
  mem.flush();
}

/// p = f o (c h^T - D) over S.
template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1) loss_small_p(LossArguments<Mem> a) {
  constexpr int kSide = SquareTile::kSide;
  Mem mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  ATTEST_SHARED(float, LSE, [SquareTile::kSide]);
  ATTEST_SHARED(float, D, [SquareTile::kSide]);
  const std::int64_t first = std::int64_t{blockIdx.x} * kSide;
  const int rows = tile_extent(first, a.n), lane = static_cast<int>(threadIdx.x);
  if (lane < rows) {
    LSE[lane] = mem.load(a.LSE, first + lane);
    D[lane] = mem.load(a.D, first + lane);
  }
  for (std::int64_t key = 0; key < a.n; key += kSide) {
    const SquarePlace place{first, key, rows, tile_extent(key, a.n)};
    float sums[SquareTile::kRows] = {};
    add_product(mem, a.c, a.h.transposed(), place, a.d, panels, sums);
    for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
      const float f = expf(a.S.load(mem, i, j) - LSE[i - first]);
      mem.store(a.S.data, a.S.at(i, j), f * (sums[r] - D[i - first]));
    });
  }
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
