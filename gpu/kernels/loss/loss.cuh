#pragma once

#include "gpu/kernels/square_tiled/square_softmax.cuh"

/// The gradient of the attention loss (Li et al. 2024) in float32, what both of its forms share:
/// with f = softmax rows of A1 X A2^T, h = A3 Y, c = f h - E, D = rowsum(c o f h) and
/// p = f o (c h^T - D): dX = A1^T p A2, dY = (f A3)^T c.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Mem>
struct LossArguments {
  using Given = MatrixView<typename Mem::template In<float>>;
  using Made = MatrixView<typename Mem::template Out<float>>;

  std::int64_t n = 0;
  int d = 0;
  Given A1, A2, A3, E, X, Y;
  Made dX, dY;                               // dY.data may be null
  Made QX, h, c, W, Z;                       // workspace, (n, d): A1 X, A3 Y, f h - E, p A2, f A3
  Made S;                                    // (n, n), of loss_small alone: scores, then p
  typename Mem::template Out<float> LSE, D;  // (n)
  typename Mem::Sink sink;
};

/// The same matrix, to be read.
template <class Mem>
__host__ __device__ typename LossArguments<Mem>::Given reading(
    const typename LossArguments<Mem>::Made& matrix) {
  return {matrix.data, matrix.origin, matrix.row, matrix.column};
}

/// C = A B. A is (rows, inner).
template <class Mem>
struct ProductArguments {
  typename LossArguments<Mem>::Given A, B;
  typename LossArguments<Mem>::Made C;
  std::int64_t rows = 0, columns = 0, inner = 0;
  typename Mem::Sink sink;
};

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
