#include "gpu/kernels/flash1/flash1.cuh"

#include "gpu/kernels/kernels.hpp"

namespace attest::gpu {
namespace {

constexpr int kMostMerges = 256;

LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  flash1_launches(planned_forward(shape), {}, plan);
  return plan;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return tiles_of(shape.seqlen_k, Flash1::kBlockK) <= kMostMerges && plan(shape).fits(emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return 2 * tensor_rows(problem) * problem.num_heads_q;
}

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  const SavedStatistics<simt::Counted> saved{call.take("m", call.lse_words()),
                                             call.take("l", call.lse_words()), call.lse_strides()};
  EmulatedLaunches launches(emulation, call.memory);
  flash1_launches(call.arguments, saved, launches);
  return launches.report();
}

}  // namespace

/// gpu/flash1, forward alone. O is divided by its sum after every block of keys, a merge of
/// normalized results for each: more than 256 blocks are refused.
const EmulatedKernel& flash1_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/flash1", "CUDA, emulated on the host: key blocks stay, O passes through memory",
            "flash1:bq=32,bk=32");
        d.features &= ~static_cast<std::uint32_t>(ATTEST_LSE);
        d.numerics.lse_splits = kMostMerges;
        d.numerics.lse_split_keys = 1;  // a band may leave one to a block
        return d;
      }(),
      {.forward = {fits, workspace_words, run, plan}});
  return kernel;
}

}  // namespace attest::gpu
