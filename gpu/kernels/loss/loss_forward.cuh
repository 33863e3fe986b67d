#pragma once

#include "gpu/kernels/loss/loss.cuh"
#include "gpu/kernels/tiles/backward_tile.cuh"

/// f times the rows of a matrix, 32 rows of A1 X resident, those of A2 and of the matrix passing:
/// flash2's order.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Result that a block of rows makes of f and values: c = f h - E with LSE and D, or Z = f A3.
enum class Weighed { residual, mean };

struct LossForward {
  /// QX (32, d), A2 and values (passing, d), P (32, passing), m, l, rescale (32).
  template <class Tile>
  __host__ __device__ static std::int64_t shared_floats(int d) {
    return std::int64_t{Tile::kResident + 2 * Tile::kPassing} * odd_stride(d) +
           Tile::kResident * (Tile::kPassing + 3);
  }
};

template <class Tile, Weighed kWeighed, class Mem>
__device__ void loss_forward(Mem& mem, const LossArguments<Mem>& a,
                             const typename LossArguments<Mem>::Given& values) {
  constexpr int kResident = Tile::kResident, kPassing = Tile::kPassing;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int d = a.d, stride = odd_stride(d);
  float* const QX = shared;
  float* const A2 = QX + kResident * stride;
  float* const V = A2 + kPassing * stride;
  float* const P = V + kPassing * stride;
  float* const m = P + kResident * kPassing;
  float* const l = m + kResident;
  float* const rescale = l + kResident;

  const std::int64_t first = std::int64_t{blockIdx.x} * kResident;
  const int rows = rows_from(first, a.n, kResident).count;
  const TileLane at = tile_lane<Tile>();
  load_tile<kResident>(mem, a.QX.data, Strides{0, a.QX.row, 0, a.QX.column}, a.QX.at(first, 0),
                       rows, d, QX, stride);
  if (threadIdx.x < kResident) {
    m[threadIdx.x] = -INFINITY;
    l[threadIdx.x] = 0;
  }
  float sums[Tile::kRows][Tile::kColumns];
  clear_sums(sums);
  for (std::int64_t key = 0; key < a.n; key += kPassing) {
    const int keys = rows_from(key, a.n, kPassing).count;
    __syncthreads();  // V, P and rescale of the tile before are no longer read
    load_rows(mem, a.A2.data, Strides{0, a.A2.row, 0, a.A2.column}, a.A2.at(key, 0), keys, d, A2,
              stride);
    load_rows(mem, values.data, Strides{0, values.row, 0, values.column}, values.at(key, 0), keys,
              d, V, stride);
    __syncthreads();
    float S[Tile::kPairRows] = {};
    if (at.lane < keys)
      add_row_products(QX + at.pair_row * stride, stride, A2 + at.lane * stride, d, S);
    for (int r = 0; r < Tile::kPairRows; ++r) {
      const int row = at.pair_row + r;
      const float score = at.lane < keys ? S[r] : -INFINITY;
      const float before = m[row], maximum = fmaxf(before, warp_max(score));
      const float p = expf(score - maximum), total = warp_sum(p);
      __syncwarp();  // all lanes have read m
      if (at.lane == 0) {
        rescale[row] = expf(before - maximum);
        l[row] = l[row] * rescale[row] + total;
        m[row] = maximum;
      }
      if (at.lane < kPassing) P[row * kPassing + at.lane] = p;
    }
    __syncthreads();
    ATTEST_UNROLL
    for (int c = 0; c < Tile::kColumns; ++c) {
      for (int r = 0; r < Tile::kRows; ++r) sums[r][c] *= rescale[at.row + r];
    }
    add_weighted<Tile>(P, V, keys, d, stride, at, sums);
  }
  // QX is not read after the last barrier.
  leave_sums<Tile>(sums, 1, at, QX, d, stride);
  __syncthreads();
  for (int row = at.warp; row < rows; row += Tile::kWarps) {
    const std::int64_t i = first + row;
    float D = 0;
    for (int c = at.lane; c < d; c += 32) {
      const float weighed = QX[row * stride + c] / l[row];
      if constexpr (kWeighed == Weighed::mean) {
        mem.store(a.Z.data, a.Z.at(i, c), weighed);
      } else {
        const float residual = weighed - a.E.load(mem, i, c);
        mem.store(a.c.data, a.c.at(i, c), residual);
        D += residual * weighed;
      }
    }
    if constexpr (kWeighed == Weighed::residual) {
      D = warp_sum(D);
      if (at.lane == 0) {
        mem.store(a.D, i, D);
        mem.store(a.LSE, i, m[row] + logf(l[row]));
      }
    }
  }
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
