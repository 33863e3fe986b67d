#pragma once

#include "gpu/kernels/loss/loss_large.cuh"
#include "gpu/kernels/loss/loss_small.cuh"

/// The loss gradient in FlashAttention's order without a (head_dim, head_dim) matrix in shared
/// memory: blocks of r rows stay as in loss_large, the products with X, Y and A1^T are tiles of
/// b x b as in loss_small. No atomic addition: equal calls give equal bits.
///
/// Grid:   products: a block for each tile of C; else a block for each r rows.
/// Shared: the more of two panels (b, b) and what attention's backward takes.
/// Words:  of the schedule loss_rows:b1=r,b2=r,b=b for dX; dY takes Z = f A3 and Z^T c besides.
///         [gpu/kernels/capped_test]
/// Source: ours, the same kernels in another order.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// launch(name, line, kernel, arguments...) for all launches in turn; dY where there is one.
///
/// Requires: d at most kMostBackwardColumns.
template <int kRows, class Square, Registers kRegisters, class Mem, class Launch>
void loss_rows_launches(const LossArguments<Mem>& a, Launch&& launch) {
  const auto multiply = [&](const ProductArguments<Mem>& task) {
    loss_small_multiply<Square>(task, launch);
  };
  multiply({a.A1, a.X, a.QX, a.n, a.d, a.d, a.sink});
  multiply({a.A3, a.Y, a.h, a.n, a.d, a.d, a.sink});
  loss_large_rows<kRows, kRegisters>(a, launch);
  if (a.dY.data) {
    multiply({reading<Mem>(a.Z).transposed(), reading<Mem>(a.c), a.dY, a.d, a.d, a.n, a.sink});
  }
  multiply({a.A1.transposed(), reading<Mem>(a.W), a.dX, a.d, a.d, a.n, a.sink});
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
