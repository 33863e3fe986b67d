#include "gpu/kernels/flash2/flash2_tensor_core.cuh"

#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/two_pass/two_pass_tensor_core.hpp"

namespace attest::gpu {
namespace {

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= WidestTensorTile::kMostColumns &&
         with_tensor_tile(widest_head(shape), [&](auto tile) {
           return gpu::fits(Flash2TensorCore::line(tile, shape), emulation);
         });
}

std::int64_t no_workspace(const attest_problem&) { return 0; }

template <class T>
LaunchPlan plan(const AttentionShape& shape) {
  ForwardArguments<simt::Counted, T> arguments;
  arguments.shape = shape;
  LaunchPlan launches;
  flash2_tensor_core_launches(arguments, launches);
  return launches;
}

template <class T>
simt::LaunchReport launch(EmulatedForward& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  flash2_tensor_core_launches(call.typed<T>(), launches);
  return launches.report();
}

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? launch<Bf16>(call, emulation) : launch<F16>(call, emulation);
}

}  // namespace

/// gpu/flash2_tensor_core: forward as flash2, backward in two passes, on tensor cores; tensors in
/// bf16 or f16.
/// [gpu/kernels/tensor_core_test]
const EmulatedKernel& flash2_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      tensor_core_description(
          "gpu/flash2_tensor_core",
          "CUDA, emulated on the host: flash2 and two passes back, on tensor cores",
          "flash2:bq=64,bk=32", "two_pass:bq=64,bk=32,cq=32,ck=64"),
      {.forward = {fits, no_workspace, run, plan<Bf16>},
       .backward = {two_pass_tensor_core_fits, delta_words, two_pass_tensor_core_emulated,
                    two_pass_tensor_core_plan<Bf16>}});
  return kernel;
}

}  // namespace attest::gpu
