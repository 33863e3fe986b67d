#include "gpu/kernels/block_flash2/block_flash2.hpp"

#include "gpu/kernels/block_flash2/block_flash2.cuh"
#include "gpu/kernels/two_pass/two_pass.hpp"

namespace attest::gpu {
namespace {

LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  block_flash2_launches(planned_forward(shape), plan);
  return plan;
}

LaunchPlan backward_plan(const AttentionShape& shape) {
  LaunchPlan plan;
  block_two_pass_launches(planned_backward(shape), plan);
  return plan;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.head_dim_v <= kMostColumns && plan(shape).fits(emulation);
}

bool backward_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= kMostBackwardColumns && backward_plan(shape).fits(emulation);
}

std::int64_t no_workspace(const attest_problem&) { return 0; }

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  block_flash2_launches(call.arguments, launches);
  return launches.report();
}

simt::LaunchReport run_backward(EmulatedBackward& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  block_two_pass_launches(call.arguments, launches);
  return launches.report();
}

}  // namespace

std::string block_two_pass_schedule(const AttentionShape& shape) {
  return "block_" + two_pass_schedule(shape);
}

const EmulatedKernel& block_flash2_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/block_flash2",
            "CUDA, emulated on the host: flash2 and two passes back over lists of blocks",
            "block_flash2:bq=32,bk=32", "block_two_pass:bq=32,bk=32,cq=32,ck=32");
        d.features &= ~std::uint32_t{ATTEST_BOOLEAN_MASK};
        d.features |= ATTEST_BLOCK_MASK;
        return d;
      }(),
      {.forward = {fits, no_workspace, run, plan},
       .backward = {backward_fits, delta_words, run_backward, backward_plan}});
  return kernel;
}

}  // namespace attest::gpu
