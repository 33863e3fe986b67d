#include "proptest/laws/trials/agreement.hpp"

#include "core/numerics.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

bool same_conventions(const attest_kernel& first, const attest_kernel& second) {
  const Conventions a = conventions_of(first.description), b = conventions_of(second.description);
  return a.empty_row == b.empty_row && a.lse_base == b.lse_base;
}

bool both_write_lse(const attest_kernel& first, const attest_kernel& second) {
  return (first.description.features & second.description.features & ATTEST_LSE) != 0;
}

}  // namespace

LawResult check_agreement(const attest_kernel& first, const attest_kernel& second, const Case& c) {
  return guarded([&] {
    if (!same_conventions(first, second)) {
      stop(Verdict::unsupported, "the kernels' conventions differ");
    }
    if (c.problem.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const Direction direction = furthest(first, c.problem) == Direction::backward
                                    ? furthest(second, c.problem)
                                    : Direction::forward;
    InputValues in = make_values(c.problem, c.values, c.seed);
    // Not every kernel takes a gradient of LSE; zero is what the others mean.
    in.dLSE = mapped(in.dLSE, [](auto, auto, auto, auto) { return 0.0; });
    const Solved a(first, c.problem, in, direction, c), b(second, c.problem, in, direction, c);
    const reference::ForwardBounds &fa = a.truth.forward_bounds(), &fb = b.truth.forward_bounds();
    std::vector<Comparison> found{compare_pair(a.run.O.view(), b.run.O.view(), fa.O, fb.O)};
    if (both_write_lse(first, second)) {
      found.push_back(compare_pair(a.run.LSE.view(), b.run.LSE.view(), fa.LSE, fb.LSE));
    }
    if (direction == Direction::backward) {
      const auto ba = a.truth.backward_bounds(a.run), bb = b.truth.backward_bounds(b.run);
      found.push_back(compare_pair(a.run.dQ.view(), b.run.dQ.view(), ba.dQ, bb.dQ));
      found.push_back(compare_pair(a.run.dK.view(), b.run.dK.view(), ba.dK, bb.dK));
      found.push_back(compare_pair(a.run.dV.view(), b.run.dV.view(), ba.dV, bb.dV));
      if (c.problem.sinks != Sinks::none) {
        found.push_back(
            compare_pair(a.run.dSinks.view(), b.run.dSinks.view(), ba.dSinks, bb.dSinks));
      }
      if (c.problem.bias.kind != Bias::Kind::none) {
        found.push_back(compare_pair(a.run.dBias.view(), b.run.dBias.view(), ba.dBias, bb.dBias));
      }
    }
    LawResult result = judged(found);
    // A decoy that passes for the one kernel would pass here too: this bound is only wider.
    if (result.verdict != Verdict::passed) return result;
    const std::vector<std::string> decoys = a.truth.passing_decoys(a.run);
    if (decoys.empty()) return result;
    return LawResult{Verdict::vacuous, "would also pass: " + decoys.front(), result.comparisons};
  });
}

}  // namespace attest::proptest
