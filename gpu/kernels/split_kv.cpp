#include "gpu/kernels/split_kv.hpp"

#include "gpu/kernels/split_kv.cuh"

namespace attest::gpu {
namespace {

LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  split_kv_launches(planned_forward(shape), {}, plan);
  return plan;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.head_dim_v <= kMostColumns && plan(shape).fits(emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return SplitKv::kSplits * tensor_rows(problem) * problem.num_heads_q * (problem.head_dim_v + 1);
}

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  SplitParts<simt::Counted> parts;
  parts.O = call.take("O of a part", SplitKv::kSplits * call.o_words());
  parts.LSE = call.take("LSE of a part", SplitKv::kSplits * call.lse_words());
  parts.o = call.o_strides();
  parts.lse = call.lse_strides();
  parts.o_part = call.o_words();
  parts.lse_part = call.lse_words();
  EmulatedLaunches launches(emulation, call.memory);
  split_kv_launches(call.arguments, parts, launches);
  return launches.report();
}

}  // namespace

const EmulatedKernel& split_kv_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/split_kv", "CUDA, emulated on the host: flash2 on four parts of the keys, merged",
            "split_kv:splits=4,bq=32,bk=32");
        d.numerics.lse_splits = 1;
        return d;
      }(),
      {.forward = {fits, workspace_words, run, plan}});
  return kernel;
}

}  // namespace attest::gpu
