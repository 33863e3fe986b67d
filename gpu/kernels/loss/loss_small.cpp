#include "gpu/kernels/loss/loss_small.hpp"

#include "gpu/kernels/loss/loss_small.cuh"

namespace attest::gpu {
namespace {

std::int64_t workspace_words(const attest_problem& problem) {
  return loss_words(problem) + problem.seqlen_q * problem.seqlen_q;
}

template <int kSide>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  loss_small_launches<SquareTile<kSide>>(EmulatedLoss::planned(shape), plan);
  return plan;
}

template <int kSide>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return loss_claimed(shape) && plan<kSide>(shape).fits(emulation);
}

template <int kSide>
simt::LaunchReport run(EmulatedLoss& call, const simt::Emulation& emulation) {
  LossArguments<EmulatedLoss::Mem>& a = call.arguments;
  a.S = call.take("S", a.n, a.n);
  EmulatedLaunches launches(emulation, call.memory);
  loss_small_launches<SquareTile<kSide>>(a, launches);
  return launches.report();
}

}  // namespace

template <int kSide>
const EmulatedKernel& loss_small_side_kernel() {
  static const std::string name = variant_name("gpu/loss_small", kSide, 32);
  static const std::string schedule = "loss_small:b=" + std::to_string(kSide);
  static const EmulatedKernel kernel(
      emulated_loss_description(name.c_str(),
                                "CUDA, emulated on the host: loss gradient by square tiles",
                                schedule.c_str()),
      {.loss_gradient = {fits<kSide>, workspace_words, run<kSide>, plan<kSide>}});
  return kernel;
}
template const EmulatedKernel& loss_small_side_kernel<16>();
template const EmulatedKernel& loss_small_side_kernel<32>();
template const EmulatedKernel& loss_small_side_kernel<64>();
template const EmulatedKernel& loss_small_side_kernel<128>();

const EmulatedKernel& loss_small_kernel() { return loss_small_side_kernel<32>(); }

}  // namespace attest::gpu
