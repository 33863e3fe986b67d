#include "gpu/kernels/loss/loss_large.hpp"

#include "gpu/kernels/loss/loss_large.cuh"

namespace attest::gpu {
namespace {

template <int kRows, Registers kRegisters>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  loss_large_launches<kRows, kRegisters>(EmulatedLoss::planned(shape), plan);
  return plan;
}

template <int kRows, Registers kRegisters>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return loss_claimed(shape) && shape.head_dim_qk <= kMostBackwardColumns &&
         plan<kRows, kRegisters>(shape).fits(emulation);
}

template <int kRows, Registers kRegisters>
simt::LaunchReport run(EmulatedLoss& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  loss_large_launches<kRows, kRegisters>(call.arguments, launches);
  return launches.report();
}

}  // namespace

const EmulatedKernel& loss_large_kernel() {
  constexpr Registers kCompiled = Registers::as_compiled;
  static const EmulatedKernel kernel(
      emulated_loss_description(
          "gpu/loss_large", "CUDA, emulated on the host: loss gradient, blocks of rows resident",
          "loss_large:b1=32,b2=32"),
      {.loss_gradient = {fits<32, kCompiled>, loss_words, run<32, kCompiled>,
                         plan<32, kCompiled>}});
  return kernel;
}

template <int kRows>
const EmulatedKernel& loss_large_held_kernel() {
  constexpr Registers kHeld = Registers::held;
  static const std::string rows = std::to_string(kRows), name = "gpu/loss_large_" + rows,
                           schedule = "loss_large:b1=" + rows + ",b2=" + rows;
  static const EmulatedKernel kernel(
      emulated_loss_description(
          name.c_str(), "CUDA, emulated on the host: gpu/loss_large in 128 registers a lane",
          schedule.c_str()),
      {.loss_gradient = {fits<kRows, kHeld>, loss_words, run<kRows, kHeld>, plan<kRows, kHeld>}});
  return kernel;
}
template const EmulatedKernel& loss_large_held_kernel<8>();
template const EmulatedKernel& loss_large_held_kernel<16>();
template const EmulatedKernel& loss_large_held_kernel<32>();

}  // namespace attest::gpu
