#include "gpu/kernels/key_stationary/key_stationary.hpp"

#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/key_stationary/key_stationary.cuh"

namespace attest::gpu {

LaunchPlan key_stationary_plan(const AttentionShape& shape) {
  const BackwardArguments<simt::Counted> arguments = planned_backward(shape);
  LaunchPlan plan;
  key_stationary_prepare_launch(arguments, plan);
  key_stationary_keys_launch(arguments, plan);
  return plan;
}

bool key_stationary_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= kMostBackwardColumns && key_stationary_plan(shape).fits(emulation);
}

std::string key_stationary_schedule(const AttentionShape& shape) {
  return "key_stationary:bq=" + std::to_string(passing_rows(shape)) + ",bk=32";
}

simt::LaunchReport key_stationary_prepare_emulated(const EmulatedBackward& call,
                                                   const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  key_stationary_prepare_launch(call.arguments, launches);
  return launches.report();
}

simt::LaunchReport key_stationary_keys_emulated(const EmulatedBackward& call,
                                                const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  key_stationary_keys_launch(call.arguments, launches);
  return launches.report();
}

simt::LaunchReport key_stationary_emulated(const EmulatedBackward& call,
                                           const simt::Emulation& emulation) {
  simt::LaunchReport report = key_stationary_prepare_emulated(call, emulation);
  report += key_stationary_keys_emulated(call, emulation);
  return report;
}

const EmulatedKernel& key_stationary_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = flash2_kernel().description();
        d.name = "gpu/key_stationary";
        d.summary =
            "CUDA, emulated on the host: forward of gpu/flash2; backward with atomic additions to "
            "dQ";
        // This backward leaves no dSinks and no dBias, and takes no pages.
        d.features &= ~std::uint32_t{ATTEST_SINKS | ATTEST_PAGED_KV | ATTEST_BIAS};
        d.numerics.nondeterministic = 1;
        d.schedule_backward = "key_stationary:bq=32,bk=32";
        return d;
      }(),
      {.forward = flash2_kernel().directions().forward,
       .backward = {key_stationary_fits, delta_words,
                    [](EmulatedBackward& call, const simt::Emulation& emulation) {
                      return key_stationary_emulated(call, emulation);
                    },
                    key_stationary_plan}});
  return kernel;
}

}  // namespace attest::gpu
