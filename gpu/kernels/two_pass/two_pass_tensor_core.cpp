#include "gpu/kernels/two_pass/two_pass_tensor_core.hpp"

#include "gpu/kernels/two_pass/two_pass_tensor_core.cuh"

namespace attest::gpu {
namespace {

template <class T>
simt::LaunchReport run(EmulatedBackward& call, const simt::Emulation& emulation) {
  const auto arguments = call.typed<T>();
  EmulatedLaunches launches(emulation, call.memory);
  with_tensor_tile(widest_head(arguments.shape),
                   [&](auto tile) { two_pass_tensor_core_launches(tile, arguments, launches); });
  return launches.report();
}

}  // namespace

bool two_pass_tensor_core_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  if (widest_head(shape) > WidestTensorTile::kMostColumns) return false;
  return two_pass_tensor_core_plan<Bf16>(shape).fits(emulation);
}

template <class T>
LaunchPlan two_pass_tensor_core_plan(const AttentionShape& shape) {
  BackwardArguments<simt::Counted, T> arguments;
  arguments.shape = shape;
  LaunchPlan plan;
  with_tensor_tile(widest_head(shape),
                   [&](auto tile) { two_pass_tensor_core_launches(tile, arguments, plan); });
  return plan;
}
template LaunchPlan two_pass_tensor_core_plan<Bf16>(const AttentionShape&);
template LaunchPlan two_pass_tensor_core_plan<F16>(const AttentionShape&);

simt::LaunchReport two_pass_tensor_core_emulated(EmulatedBackward& call,
                                                 const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? run<Bf16>(call, emulation) : run<F16>(call, emulation);
}

}  // namespace attest::gpu
