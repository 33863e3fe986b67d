#include "gpu/kernels/flash2_tensor_core.hpp"

#include "gpu/kernels/flash2_tensor_core.cuh"
#include "gpu/kernels/two_pass_tensor_core.hpp"

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
simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  EmulatedLaunches launches(emulation, call.memory);
  flash2_tensor_core_launches(call.sixteen_bit<T>(), launches);
  return launches.report();
}

EmulatedDirection<EmulatedBackward> backward(attest_dtype dtype) {
  return {two_pass_tensor_core_fits, delta_words, two_pass_tensor_core_emulated,
          dtype == ATTEST_BF16 ? two_pass_tensor_core_plan<Bf16> : two_pass_tensor_core_plan<F16>};
}

attest_description description(const char* name, attest_dtype dtype) {
  attest_description d = emulated_description(
      name, "CUDA, emulated on the host: flash2 and two passes back, on tensor cores",
      "flash2:bq=64,bk=32", "two_pass:bq=64,bk=32,cq=32,ck=64");
  d.dtypes = 1U << dtype;
  d.numerics.accumulation = ATTEST_FUSED_BLOCKS;
  d.numerics.fused_block = 8;
  d.numerics.fused_fraction_bits = 24;
  d.numerics.p_cast = 1 + dtype;
  return d;
}

}  // namespace

const EmulatedKernel& flash2_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      description("gpu/flash2_tensor_core", ATTEST_BF16),
      {.forward = {fits, no_workspace, run<Bf16>, plan<Bf16>}, .backward = backward(ATTEST_BF16)});
  return kernel;
}

const EmulatedKernel& flash2_tensor_core_f16_kernel() {
  static const EmulatedKernel kernel(
      description("gpu/flash2_tensor_core_f16", ATTEST_F16),
      {.forward = {fits, no_workspace, run<F16>, plan<F16>}, .backward = backward(ATTEST_F16)});
  return kernel;
}

}  // namespace attest::gpu
