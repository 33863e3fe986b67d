#include "gpu/kernels/loss_small.hpp"

#include <algorithm>

#include "gpu/kernels/loss_small.cuh"

namespace attest::gpu {
namespace {

using Mem = EmulatedLoss::Mem;

BlockLine tile_line(std::int64_t rows, std::int64_t columns) {
  constexpr int kSide = SquareTile::kSide;
  return {blocks_for(rows, kSide, blocks_for(columns, kSide, 1, 1), 1), SquareTile::kLanes, 0};
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  const std::int64_t widest = std::max<std::int64_t>(shape.seqlen_q, shape.head_dim_qk);
  return loss_claimed(shape) && gpu::fits(tile_line(widest, widest), emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return loss_words(problem) + problem.seqlen_q * problem.seqlen_q;
}

}  // namespace

simt::LaunchReport loss_small_emulated(EmulatedLoss& call, const simt::Emulation& emulation) {
  LossArguments<Mem>& a = call.arguments;
  a.S = call.take("S", a.n, a.n);
  simt::LaunchReport report;
  const auto product = [&](const ProductArguments<Mem>& task) {
    report += launch_line(tile_line(task.rows, task.columns), emulation, call.memory,
                          loss_small_product<Mem>, task);
  };
  const auto rows = [&](const auto& kernel) {
    report += launch_line(tile_line(a.n, 1), emulation, call.memory, kernel, a);
  };
  product({a.A1, a.X, a.QX, a.n, a.d, a.d, a.sink});
  product({a.A3, a.Y, a.h, a.n, a.d, a.d, a.sink});
  rows(loss_small_scores<Mem>);
  rows(loss_small_residual<Mem>);
  if (a.dY.data) {
    rows(loss_small_weigh<Mem>);
    product({reading<Mem>(a.Z).transposed(), reading<Mem>(a.c), a.dY, a.d, a.d, a.n, a.sink});
  }
  rows(loss_small_p<Mem>);
  product({reading<Mem>(a.S), a.A2, a.W, a.n, a.d, a.n, a.sink});
  product({a.A1.transposed(), reading<Mem>(a.W), a.dX, a.d, a.d, a.n, a.sink});
  return report;
}

const EmulatedKernel& loss_small_kernel() {
  static const EmulatedKernel kernel(
      emulated_loss_description("gpu/loss_small",
                                "CUDA, emulated on the host: loss gradient by square tiles",
                                "loss_small:b=32"),
      {.loss_gradient = {fits, workspace_words, loss_small_emulated}});
  return kernel;
}

}  // namespace attest::gpu
