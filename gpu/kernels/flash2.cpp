#include "gpu/kernels/flash2.hpp"

#include "core/error.hpp"
#include "gpu/kernels/flash2.cuh"
#include "gpu/kernels/two_pass.hpp"

namespace attest::gpu {
namespace {

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.head_dim_v <= kMostColumns && gpu::fits(Flash2::line(shape), emulation);
}

template <class T>
simt::LaunchReport launch(const EmulatedForward& call,
                          const ForwardArguments<simt::Counted, T>& arguments,
                          const simt::Emulation& emulation) {
  const AttentionShape& shape = arguments.shape;
  if (shape.head_dim_v > kMostColumns) throw InvalidProblem("gpu/flash2: head_dim_v is over 576");
  EmulatedLaunches launches(emulation, call.memory);
  flash2_launches(arguments, launches);
  return launches.report();
}

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  return flash2_forward_emulated(call, emulation);
}

simt::LaunchReport run_16bit(EmulatedForward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? launch(call, call.sixteen_bit<Bf16>(), emulation)
                                     : launch(call, call.sixteen_bit<F16>(), emulation);
}

std::int64_t no_workspace(const attest_problem&) { return 0; }

simt::LaunchReport run_backward(EmulatedBackward& call, const simt::Emulation& emulation) {
  return two_pass_emulated(call, emulation);
}

}  // namespace

simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation) {
  return launch(call, call.arguments, emulation);
}

FastMemory flash2_fast_memory(const AttentionShape& shape) {
  const BlockLine line = Flash2::line(shape);
  return with_columns(shape.head_dim_v, [&]<int kColumns>() {
    return FastMemory{
        line.dynamic_shared_bytes, line.lanes,
        declared_thread_memory("flash2_forward<" + std::to_string(kColumns) + ", float>")};
  });
}

const EmulatedKernel& flash2_kernel() {
  static const EmulatedKernel kernel(
      emulated_description("gpu/flash2",
                           "CUDA, emulated on the host: online softmax; backward in two passes",
                           "flash2:bq=32,bk=32"),
      {.forward = {fits, no_workspace, run},
       .backward = {two_pass_fits, delta_words, run_backward}});
  return kernel;
}

const EmulatedKernel& flash2_16bit_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/flash2_16bit",
            "CUDA, emulated on the host: online softmax, float32 between 16-bit tensors",
            "flash2:bq=32,bk=32");
        d.dtypes = 1U << ATTEST_BF16 | 1U << ATTEST_F16;
        return d;
      }(),
      {.forward = {fits, no_workspace, run_16bit}});
  return kernel;
}

}  // namespace attest::gpu
