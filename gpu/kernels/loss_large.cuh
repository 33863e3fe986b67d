#pragma once

#include "gpu/kernels/loss_forward.cuh"
#include "gpu/kernels/query_gradients.cuh"

/// The loss gradient for fast memory that holds a (head_dim, head_dim) matrix: blocks of 32 rows
/// stay, W = p A2 is stored. No atomic addition: equal calls give equal bits.
///
/// Grid:   for the products with X, Y and for dX, dY one block each, which holds the square matrix;
///         else a block for each 32 rows.
/// Shared: a square matrix and 64 rows, or as attention's backward.
/// Words:  of the schedule loss_large:b1=32,b2=32 for dX; dY takes Z = f A3 and Z^T c besides.
///         [gpu/kernels/loss_test "words"]
/// Source: Li et al. 2024, large cache.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct LossLarge {
  static constexpr int kRows = 32, kLanes = 256;

  /// A square matrix and rows of two others.
  __host__ __device__ static std::int64_t shared_floats(int d) {
    return std::int64_t{d} * d + std::int64_t{2} * kRows * d;
  }
};

template <class Mem>
__device__ void load_matrix(Mem& mem, const typename LossArguments<Mem>::Given& matrix,
                            std::int64_t first, int rows, int columns, float* shared) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += LossLarge::kLanes) {
    shared[i] = matrix.load(mem, first + i / columns, i % columns);
  }
}

/// C = A B, B resident.
template <class Mem>
__device__ void resident_product(Mem& mem, const ProductArguments<Mem>& a) {
  constexpr int kRows = LossLarge::kRows;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int d = static_cast<int>(a.columns);
  float* const B = shared;
  float* const A = B + d * d;
  load_matrix(mem, a.B, 0, d, d, B);
  for (std::int64_t first = 0; first < a.rows; first += kRows) {
    const int rows = static_cast<int>(a.rows - first < kRows ? a.rows - first : kRows);
    __syncthreads();  // the rows before are no longer read
    load_matrix(mem, a.A, first, rows, d, A);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * d; i += LossLarge::kLanes) {
      const int row = i / d, column = i % d;
      float sum = 0;
      for (int k = 0; k < d; ++k) sum += A[row * d + k] * B[k * d + column];
      mem.store(a.C.data, a.C.at(first + row, column), sum);
    }
  }
}

/// C = A^T B, A and B tall, C resident.
template <class Mem>
__device__ void outer_product(Mem& mem, const ProductArguments<Mem>& a) {
  constexpr int kRows = LossLarge::kRows, kLanes = LossLarge::kLanes;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int d = static_cast<int>(a.columns), lane = static_cast<int>(threadIdx.x);
  float* const C = shared;
  float* const A = C + d * d;
  float* const B = A + kRows * d;
  for (int i = lane; i < d * d; i += kLanes) C[i] = 0;
  for (std::int64_t first = 0; first < a.inner; first += kRows) {
    const int rows = static_cast<int>(a.inner - first < kRows ? a.inner - first : kRows);
    __syncthreads();  // the rows before are no longer read
    load_matrix(mem, a.A, first, rows, d, A);
    load_matrix(mem, a.B, first, rows, d, B);
    __syncthreads();
    for (int i = lane; i < d * d; i += kLanes) {  // each lane its own words of C
      float sum = C[i];
      for (int k = 0; k < rows; ++k) sum += A[k * d + i / d] * B[k * d + i % d];
      C[i] = sum;
    }
  }
  for (int i = lane; i < d * d; i += kLanes) mem.store(a.C.data, a.C.at(i / d, i % d), C[i]);
}

/// Block 0 makes the first product, block 1 the second.
template <class Mem>
__global__ void __launch_bounds__(LossLarge::kLanes, 1)
    loss_large_resident(ProductArguments<Mem> one, ProductArguments<Mem> other) {
  Mem mem(one.sink);
  if (blockIdx.x == 0) {
    resident_product(mem, one);
  } else {
    resident_product(mem, other);
  }
  mem.flush();
}

template <class Mem>
__global__ void __launch_bounds__(LossLarge::kLanes, 1)
    loss_large_outer(ProductArguments<Mem> one, ProductArguments<Mem> other) {
  Mem mem(one.sink);
  if (blockIdx.x == 0) {
    outer_product(mem, one);
  } else {
    outer_product(mem, other);
  }
  mem.flush();
}

/// c, LSE and D.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) loss_large_residual(LossArguments<Mem> a) {
  Mem mem(a.sink);
  loss_forward<Tile, Weighed::residual>(mem, a, reading<Mem>(a.h));
  mem.flush();
}

/// Z = f A3.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) loss_large_weigh(LossArguments<Mem> a) {
  Mem mem(a.sink);
  loss_forward<Tile, Weighed::mean>(mem, a, a.A3);
  mem.flush();
}

/// W = p A2: attention's dQ with c in place of dO.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) loss_large_p(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  query_gradients<Tile, DeltaSource::given>(mem, a);
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
