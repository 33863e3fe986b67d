#include "gpu/kernels/stored_scores/stored_scores.cuh"

#include "gpu/kernels/kernels.hpp"

namespace attest::gpu {
namespace {

using Scores = ScoreMatrix<simt::Counted>;
Scores take_scores(EmulatedForward& call) {
  return {call.take("S", pairs_of(call.arguments.shape))};
}

std::int64_t score_words(const attest_problem& problem) { return pairs_of(shape_of(problem)); }

std::int64_t words_with_LSE(const attest_problem& problem) {
  return score_words(problem) + tensor_rows(problem) * problem.num_heads_q;
}

LaunchPlan standard_plan(const AttentionShape& shape) {
  LaunchPlan plan;
  standard_launches(planned_forward(shape), Scores{}, plan);
  return plan;
}

LaunchPlan hybrid_plan(const AttentionShape& shape) {
  LaunchPlan plan;
  hybrid_launches(planned_forward(shape), Scores{}, plan);
  return plan;
}

bool standard_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return standard_plan(shape).fits(emulation);
}

bool hybrid_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return hybrid_plan(shape).fits(emulation);
}

simt::LaunchReport run_standard(EmulatedForward& call, const simt::Emulation& emulation) {
  const Scores scores = take_scores(call);
  EmulatedLaunches launches(emulation, call.memory);
  standard_launches(call.arguments, scores, launches);
  return launches.report();
}

simt::LaunchReport run_hybrid(EmulatedForward& call, const simt::Emulation& emulation) {
  const Scores scores = take_scores(call);
  call.require_LSE();
  EmulatedLaunches launches(emulation, call.memory);
  hybrid_launches(call.arguments, scores, launches);
  return launches.report();
}

}  // namespace

/// gpu/standard: scores, softmax of their rows, O. Rows of up to 58112 keys, in shared memory.
const EmulatedKernel& standard_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/standard", "CUDA, emulated on the host: S and P in global memory",
            "standard:bm=32,bn=32,bl=32");
        d.features &= ~static_cast<std::uint32_t>(ATTEST_LSE);
        return d;
      }(),
      {.forward = {standard_fits, score_words, run_standard, standard_plan}});
  return kernel;
}

/// gpu/hybrid: scores with LSE, Q resident; O, 128 columns at a time.
const EmulatedKernel& hybrid_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/hybrid", "CUDA, emulated on the host: query blocks stay, S in global memory",
            "hybrid:bq=32,oq=32,ov=128");
        d.numerics.exp_zero_not_one = 1;
        return d;
      }(),
      {.forward = {hybrid_fits, words_with_LSE, run_hybrid, hybrid_plan}});
  return kernel;
}

}  // namespace attest::gpu
