#include "gpu/kernels/loss_large.hpp"

#include "gpu/kernels/loss_large.cuh"

namespace attest::gpu {
namespace {

template <int kRows>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  loss_large_launches<kRows>(EmulatedLoss::planned(shape), plan);
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
  loss_large_launches<kRows>(call.arguments, launches);
  return launches.report();
}

}  // namespace

template <int kRows>
const EmulatedKernel& loss_large_kernel() {
  static const std::string name = variant_name("gpu/loss_large", kRows, 32);
  static const std::string rows = std::to_string(kRows),
                           schedule = "loss_large:b1=" + rows + ",b2=" + rows;
  static const EmulatedKernel kernel(
      emulated_loss_description(
          name.c_str(), "CUDA, emulated on the host: loss gradient, blocks of rows resident",
          schedule.c_str()),
      {.loss_gradient = {fits<kRows>, loss_words, run<kRows>, plan<kRows>}});
  return kernel;
}
template const EmulatedKernel& loss_large_kernel<8>();
template const EmulatedKernel& loss_large_kernel<16>();
template const EmulatedKernel& loss_large_kernel<32>();

}  // namespace attest::gpu
