// The case again with scores far from 0, judged by the reference.
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/level.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

// Tells whether zeros would pass, so that nothing was judged.
bool flat(const attest_kernel& kernel, const Solved& solved) {
  const Tensor& O = solved.truth.forward().O;
  const reference::ForwardBounds& bounds = solved.truth.forward_bounds();
  if (!passes(no_error(O).sigma.view(), O, bounds.O)) return false;
  const Tensor& LSE = solved.truth.forward().LSE;
  return (kernel.description.features & ATTEST_LSE) == 0 ||
         passes(no_error(LSE).sigma.view(), LSE, bounds.LSE);
}

LawResult check_score_level(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    const Levelled levelled = at_level(kernel.description, c);
    require_pairs(kernel, levelled.problem, Direction::forward);
    const Solved solved(kernel, levelled.problem, levelled.values,
                        furthest(kernel, levelled.problem), c);
    LawResult result = judged(solved.truth.judge(solved.run));
    if (result.verdict == Verdict::passed && flat(kernel, solved)) {
      return LawResult{Verdict::vacuous, "would also pass: all zeros", result.comparisons};
    }
    if (result.verdict != Verdict::passed) {
      result.message = levelled.words + ": " + result.message;
    }
    return result;
  });
}

}  // namespace

std::vector<Law> level_laws() {
  return {{"score_level",
           "with all scores of a row shifted by 75 to 10^5, up or down, outputs and gradients lie "
           "within their bounds",
           check_score_level}};
}

}  // namespace attest::proptest
