#include "gpu/kernels/loss/loss_rows.hpp"

#include "gpu/kernels/loss/loss_rows.cuh"

namespace attest::gpu {
namespace {

template <int kRows>
constexpr int kSide = kRows < 16 ? 16 : kRows;  // no tile is smaller

template <int kRows, class Mem, class Launch>
void launch_all(const LossArguments<Mem>& a, Launch& launch) {
  loss_rows_launches<kRows, SquareTile<kSide<kRows>>, Registers::held>(a, launch);
}

template <int kRows>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  launch_all<kRows>(EmulatedLoss::planned(shape), plan);
  return plan;
}

template <int kRows>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return loss_claimed(shape) && shape.head_dim_qk <= kMostBackwardColumns &&
         plan<kRows>(shape).fits(emulation);
}

template <int kRows>
simt::LaunchReport run(EmulatedLoss& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  launch_all<kRows>(call.arguments, launches);
  return launches.report();
}

}  // namespace

template <int kRows>
const EmulatedKernel& loss_rows_held_kernel() {
  static const std::string rows = std::to_string(kRows), name = "gpu/loss_rows_" + rows,
                           schedule = "loss_rows:b1=" + rows + ",b2=" + rows +
                                      ",b=" + std::to_string(kSide<kRows>);
  static const EmulatedKernel kernel(
      emulated_loss_description(
          name.c_str(), "CUDA, emulated on the host: blocks of rows resident, no square matrix",
          schedule.c_str()),
      {.loss_gradient = {fits<kRows>, loss_words, run<kRows>, plan<kRows>}});
  return kernel;
}
template const EmulatedKernel& loss_rows_held_kernel<8>();
template const EmulatedKernel& loss_rows_held_kernel<16>();
template const EmulatedKernel& loss_rows_held_kernel<32>();

}  // namespace attest::gpu
