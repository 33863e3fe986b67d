#pragma once

#include "gpu/kernels/emulated/registers.hpp"
#include "gpu/kernels/loss/loss_forward.cuh"
#include "gpu/kernels/tiles/backward_lines.cuh"

/// The loss gradient for fast memory that holds a (head_dim, head_dim) matrix: blocks of r rows
/// stay, W = p A2 is stored. No atomic addition: equal calls give equal bits.
///
/// Grid:   for the products with X, Y and for dX, dY one block each, which holds the square matrix;
///         else a block for each r rows; gpu/loss_large has 32.
/// Shared: a square matrix and 2 r rows, or as attention's backward.
/// Words:  of the schedule loss_large:b1=r,b2=r for dX; dY takes Z = f A3 and Z^T c besides.
///         [gpu/kernels/loss/loss_test "words", gpu/kernels/capped_test]
/// Source: Li et al. 2024, large cache.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <int kPassingRows>
struct LossLarge {
  static constexpr int kRows = kPassingRows, kLanes = 8 * kRows;

  static std::string name() { return kernel_name("LossLarge", kPassingRows); }

  /// A square matrix and rows of two others.
  __host__ __device__ static std::int64_t shared_floats(int d) {
    return std::int64_t{d} * d + std::int64_t{2} * kRows * d;
  }
};

template <class Product, class Mem>
__device__ void load_matrix(Mem& mem, const typename LossArguments<Mem>::Given& matrix,
                            std::int64_t first, int rows, int columns, float* shared) {
  for (int i = static_cast<int>(threadIdx.x); i < rows * columns; i += Product::kLanes) {
    shared[i] = matrix.load(mem, first + i / columns, i % columns);
  }
}

/// C = A B, B resident.
template <class Product, class Mem>
__device__ void resident_product(Mem& mem, const ProductArguments<Mem>& a) {
  constexpr int kRows = Product::kRows;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int d = static_cast<int>(a.columns);
  float* const B = shared;
  float* const A = B + d * d;
  load_matrix<Product>(mem, a.B, 0, d, d, B);
  for (std::int64_t first = 0; first < a.rows; first += kRows) {
    const int rows = static_cast<int>(a.rows - first < kRows ? a.rows - first : kRows);
    __syncthreads();  // the rows before are no longer read
    load_matrix<Product>(mem, a.A, first, rows, d, A);
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < rows * d; i += Product::kLanes) {
      const int row = i / d, column = i % d;
      float sum = 0;
      for (int k = 0; k < d; ++k) sum += A[row * d + k] * B[k * d + column];
      mem.store(a.C.data, a.C.at(first + row, column), sum);
    }
  }
}

/// C = A^T B, A and B tall, C resident.
template <class Product, class Mem>
__device__ void outer_product(Mem& mem, const ProductArguments<Mem>& a) {
  constexpr int kRows = Product::kRows, kLanes = Product::kLanes;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int d = static_cast<int>(a.columns), lane = static_cast<int>(threadIdx.x);
  float* const C = shared;
  float* const A = C + d * d;
  float* const B = A + kRows * d;
  for (int i = lane; i < d * d; i += kLanes) C[i] = 0;
  for (std::int64_t first = 0; first < a.inner; first += kRows) {
    const int rows = static_cast<int>(a.inner - first < kRows ? a.inner - first : kRows);
    __syncthreads();  // the rows before are no longer read
    load_matrix<Product>(mem, a.A, first, rows, d, A);
    load_matrix<Product>(mem, a.B, first, rows, d, B);
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
template <class Product, class Mem>
__global__ void __launch_bounds__(Product::kLanes, 1)
    loss_large_resident(ProductArguments<Mem> one, ProductArguments<Mem> other) {
  Mem mem(one.sink);
  if (blockIdx.x == 0) {
    resident_product<Product>(mem, one);
  } else {
    resident_product<Product>(mem, other);
  }
  mem.flush();
}

template <class Product, class Mem>
__global__ void __launch_bounds__(Product::kLanes, 1)
    loss_large_outer(ProductArguments<Mem> one, ProductArguments<Mem> other) {
  Mem mem(one.sink);
  if (blockIdx.x == 0) {
    outer_product<Product>(mem, one);
  } else {
    outer_product<Product>(mem, other);
  }
  mem.flush();
}

/// c, LSE and D.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_large_residual(LossArguments<Mem> a) {
  Mem mem(a.sink);
  loss_forward<Tile, Weighed::residual>(mem, a, reading<Mem>(a.h));
  mem.flush();
}

/// Z = f A3.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_large_weigh(LossArguments<Mem> a) {
  Mem mem(a.sink);
  loss_forward<Tile, Weighed::mean>(mem, a, a.A3);
  mem.flush();
}

/// W = p A2: attention's dQ with c in place of dO.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_large_p(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  query_gradients<Tile, DeltaSource::given>(mem, a);
  mem.flush();
}

/// W = p A2 as attention's dQ: Q = A1 X, K = A2, V = h, dO = c, without scale or mask.
template <class Mem>
BackwardArguments<Mem> weights_times_keys(const LossArguments<Mem>& a) {
  const auto strides = [](const auto& matrix) { return Strides{0, matrix.row, 0, matrix.column}; };
  BackwardArguments<Mem> b{};
  b.shape.batch = b.shape.num_heads_q = b.shape.num_heads_kv = 1;
  b.shape.seqlen_q = b.shape.seqlen_k = a.n;
  b.shape.head_dim_qk = b.shape.head_dim_v = a.d;
  b.shape.softmax_scale = 1;
  b.Q = a.QX.data;
  b.K = a.A2.data;
  b.V = a.h.data;
  b.dO = a.c.data;
  b.dQ = a.W.data;
  b.LSE = a.LSE;
  b.D = a.D;
  b.q = strides(a.QX);
  b.k = strides(a.A2);
  b.v = strides(a.h);
  b.d_o = strides(a.c);
  b.dq = strides(a.W);
  b.lse = b.d = {0, 1, 0, 0};
  b.sink = a.sink;
  return b;
}

/// The launches with rows resident: c, LSE and D, then W, and Z where there is dY.
///
/// Requires: d at most kMostBackwardColumns.
template <int kRows, Registers kRegisters, class Mem, class Launch>
void loss_large_rows(const LossArguments<Mem>& a, Launch&& launch) {
  with_backward_tile<kRows>(a.d, [&](auto tile) {
    using Tile = WithRegisters<decltype(tile), kRegisters>;
    const BlockLine rows{blocks_for(a.n, kRows, 1, 1), Tile::kLanes,
                         bytes_of_floats(LossForward::shared_floats<Tile>(a.d))};
    const BackwardArguments<Mem> weights = weights_times_keys(a);
    launch(kernel_name("loss_large_residual", Tile::name()), rows, loss_large_residual<Tile, Mem>,
           a);
    launch(kernel_name("loss_large_p", Tile::name()), query_line(tile, weights.shape),
           loss_large_p<Tile, Mem>, weights);
    if (a.dY.data) {
      launch(kernel_name("loss_large_weigh", Tile::name()), rows, loss_large_weigh<Tile, Mem>, a);
    }
  });
}

/// launch(name, line, kernel, arguments...) for all launches in turn; dY where there is one.
///
/// Requires: d at most kMostBackwardColumns.
template <int kRows, Registers kRegisters = Registers::as_compiled, class Mem, class Launch>
void loss_large_launches(const LossArguments<Mem>& a, Launch&& launch) {
  using Product = LossLarge<kRows>;
  const bool dY = static_cast<bool>(a.dY.data);
  const auto products = [&](const char* name, std::int64_t count, auto* kernel,
                            const ProductArguments<Mem>& one, const ProductArguments<Mem>& other) {
    launch(kernel_name(name, Product::name()),
           BlockLine{count, Product::kLanes, bytes_of_floats(Product::shared_floats(a.d))}, kernel,
           one, other);
  };
  products("loss_large_resident", 2, loss_large_resident<Product, Mem>,
           {a.A1, a.X, a.QX, a.n, a.d, a.d, a.sink}, {a.A3, a.Y, a.h, a.n, a.d, a.d, a.sink});
  loss_large_rows<kRows, kRegisters>(a, launch);
  products("loss_large_outer", dY ? 2 : 1, loss_large_outer<Product, Mem>,
           {a.A1, reading<Mem>(a.W), a.dX, a.d, a.d, a.n, a.sink},
           {reading<Mem>(a.Z), reading<Mem>(a.c), a.dY, a.d, a.d, a.n, a.sink});
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
