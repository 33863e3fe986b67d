// The law about memory that comes again: what callers do that keep their tensors.
#include "proptest/laws/memory_laws.hpp"

#include <algorithm>

#include "core/rng.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

// A few rows are enough, and two references cost next to nothing then; of a kernel that does not
// claim them the case's own.
Problem few_rows(const attest_kernel& kernel, const Problem& given) {
  constexpr std::int64_t kRows = 16, kOthers = 2;
  Problem few = plain_problem(given);
  few.batch = std::min(few.batch, kOthers);
  few.seqlen_q = std::min(few.seqlen_q, kRows);
  few.seqlen_k = std::min(few.seqlen_k, kRows);
  const std::int64_t group = std::min(few.group_size(), kOthers);
  few.num_heads_kv = std::min(few.num_heads_kv, kOthers);
  few.num_heads_q = few.num_heads_kv * group;
  const auto claimed = [&] {
    return unclaimed(kernel.description, few, Direction::forward).empty();
  };
  if (!claimed()) {  // without a band, as of a causal kernel
    few.mask.window_left = given.mask.window_left;
    few.mask.window_right = given.mask.window_right;
    few.mask.offset = given.mask.offset;
    few.mask.align = given.mask.align;
  }
  Problem chosen = claimed() ? few : given;
  // Elements that share their memory cannot change alone, and huge tensors are not kept.
  if (chosen.strides == Strides::broadcast || chosen.strides == Strides::huge) {
    chosen.strides = Strides::packed;
  }
  return chosen;
}

bool same_outputs(const KernelRun& a, const KernelRun& b, Direction direction) {
  const bool forward = identical(a.O, b.O);
  if (direction == Direction::forward) return forward;
  return forward && identical(a.dQ, b.dQ) && identical(a.dK, b.dK) && identical(a.dV, b.dV) &&
         (a.dSinks.view().rank() == 0 || identical(a.dSinks, b.dSinks)) &&
         (a.dBias.view().rank() == 0 || identical(a.dBias, b.dBias));
}

LawResult check_same_memory(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Problem p = few_rows(kernel, c.problem);
    const Direction direction = furthest(kernel, p);
    require_pairs(kernel, p, direction);
    const InputValues values = make_values(p, Values::normal, c.seed);
    const std::pair<const char*, InputValues> later[] = {
        {"one element of each input changed", with_one_changed(p, values, c.seed)},
        {"all values changed", make_values(p, Values::normal, mix(c.seed, 1))}};
    const SameMemory kept;
    const KernelRun before = complete(kernel, p, values, direction, c);
    LawResult result;
    for (const auto& [what, changed] : later) {
      const auto truth = truth_of(kernel, p, changed, direction, c);
      const KernelRun run = complete(kernel, p, changed, direction, c);
      result = judged(truth->judge(run));
      if (result.verdict == Verdict::violated || result.verdict == Verdict::improbable) {
        result.message =
            std::string(same_outputs(run, before, direction) ? "the result of the call before, "
                                                             : "") +
            what + " in the same memory: " + result.message;
      }
      if (result.verdict != Verdict::passed) return result;
      if (gravest(truth->judge(before)).verdict == Verdict::passed) {
        stop(Verdict::vacuous, "would also pass: the result of the call before");
      }
    }
    return result;
  });
}

}  // namespace

InputValues with_one_changed(const Problem& problem, const InputValues& values,
                             std::uint64_t seed) {
  InputValues changed = values;
  std::uint64_t stream = 0x6f6e65u;
  for (Tensor* tensor : {&changed.Q, &changed.K, &changed.V, &changed.dO}) {
    const auto size = static_cast<std::uint64_t>(tensor->view().size());
    const std::uint64_t place = mix(seed, stream++);
    if (size == 0) continue;
    double& element = tensor->doubles()[place % size];
    element = round_to(problem.dtype, element > 0 ? element - 3 : element + 3);
  }
  return changed;
}

std::vector<Law> memory_laws() {
  return {replacing_mask({"same_memory",
                          "other values in the memory of an earlier call, one or all of them, give "
                          "their own results",
                          check_same_memory})};
}

}  // namespace attest::proptest
