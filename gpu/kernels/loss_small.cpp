#include "gpu/kernels/loss_small.hpp"

#include <algorithm>

#include "gpu/kernels/backward_launch.hpp"
#include "gpu/kernels/loss_small.cuh"

namespace attest::gpu {
namespace {

using Mem = EmulatedLoss::Mem;

BlockLine tiles_of(std::int64_t rows, std::int64_t columns) {
  constexpr int kSide = SquareTile::kSide;
  return {blocks_for(rows, kSide, blocks_for(columns, kSide, 1, 1), 1), SquareTile::kLanes, 0};
}

attest_status loss_gradient(const void*, const attest_loss_args* args) {
  const attest_problem& problem = *args->problem;
  simt::Emulation emulation;
  emulation.threads = problem.num_threads;
  const std::int64_t widest = std::max(problem.seqlen_q, problem.head_dim_qk);
  if (!loss_claimed(problem) || !tiles_of(widest, widest).fits(emulation)) {
    return ATTEST_UNSUPPORTED;
  }
  const EmulatedLoss call(*args, LossScores::stored);
  return loss_small_emulated(call, emulation).diagnoses.empty() ? ATTEST_OK : ATTEST_FAILED;
}

}  // namespace

simt::LaunchReport loss_small_emulated(const EmulatedLoss& call, const simt::Emulation& emulation) {
  const LossArguments<Mem>& a = call.arguments;
  simt::LaunchReport report;
  const auto product = [&](const ProductArguments<Mem>& task) {
    report += launch_line(tiles_of(task.rows, task.columns), emulation, call.memory,
                          loss_small_product<Mem>, task);
  };
  const auto rows = [&](const auto& kernel) {
    report += launch_line(tiles_of(a.n, 1), emulation, call.memory, kernel, a);
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

const attest_kernel& loss_small_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k =
        loss_kernel("gpu/loss_small", "CUDA, emulated on the host: loss gradient by square tiles");
    k.description.schedule = "loss_small:b=32";
    k.workspace_bytes = [](const void*, const attest_problem* problem, std::uint32_t) {
      return loss_workspace_bytes(*problem, LossScores::stored);
    };
    k.loss_gradient = loss_gradient;
    return k;
  }();
  return kernel;
}

}  // namespace attest::gpu
