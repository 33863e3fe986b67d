#include "gpu/kernels/split_kv/split_kv.cuh"

#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/split_kv/split_kv_tensor_core.cuh"

namespace attest::gpu {
namespace {

LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  split_kv_launches(planned_forward(shape), {}, plan);
  return plan;
}

LaunchPlan tensor_core_plan(const AttentionShape& shape) {
  LaunchPlan plan;
  split_kv_tensor_core_launches(planned_forward<Bf16>(shape), {}, plan);
  return plan;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.head_dim_v <= kMostColumns && plan(shape).fits(emulation);
}

bool tensor_core_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= WidestTensorTile::kMostColumns &&
         tensor_core_plan(shape).fits(emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return SplitKv::kSplits * tensor_rows(problem) * problem.num_heads_q * (problem.head_dim_v + 1);
}

SplitParts<simt::Counted> take_parts(EmulatedForward& call) {
  SplitParts<simt::Counted> parts;
  parts.O = call.take("O_of_part", SplitKv::kSplits * call.o_words());
  parts.LSE = call.take("LSE_of_part", SplitKv::kSplits * call.lse_words());
  parts.o = call.o_strides();
  parts.lse = call.lse_strides();
  parts.o_part = call.o_words();
  parts.lse_part = call.lse_words();
  return parts;
}

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  const SplitParts<simt::Counted> parts = take_parts(call);
  EmulatedLaunches launches(emulation, call.memory);
  split_kv_launches(call.arguments, parts, launches);
  return launches.report();
}

template <class T>
simt::LaunchReport run_typed(EmulatedForward& call, const simt::Emulation& emulation) {
  const SplitParts<simt::Counted> parts = take_parts(call);
  EmulatedLaunches launches(emulation, call.memory);
  split_kv_tensor_core_launches(call.typed<T>(), parts, launches);
  return launches.report();
}

simt::LaunchReport run_on_tensor_cores(EmulatedForward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? run_typed<Bf16>(call, emulation)
                                     : run_typed<F16>(call, emulation);
}

// All parts are merged at once.
attest_description merging(attest_description d) {
  d.numerics.lse_splits = 1;
  return d;
}

}  // namespace

/// gpu/split_kv, forward alone: four parts, merged all at once.
const EmulatedKernel& split_kv_kernel() {
  static const EmulatedKernel kernel(
      merging(emulated_description(
          "gpu/split_kv", "CUDA, emulated on the host: flash2 on four parts of the keys, merged",
          "split_kv:splits=4,bq=32,bk=32")),
      {.forward = {fits, workspace_words, run, plan}});
  return kernel;
}

/// gpu/split_kv_tensor_core: the same on tensor cores; tensors in bf16 or f16, parts in float32.
const EmulatedKernel& split_kv_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      merging(tensor_core_description(
          "gpu/split_kv_tensor_core",
          "CUDA, emulated on the host: flash2 on tensor cores on four parts of the keys, merged",
          "split_kv:splits=4,bq=64,bk=32")),
      {.forward = {tensor_core_fits, workspace_words, run_on_tensor_cores, tensor_core_plan}});
  return kernel;
}

}  // namespace attest::gpu
