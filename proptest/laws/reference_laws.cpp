// Laws that compare with the exact reference.
#include <cmath>

#include "proptest/judge/truth/sample.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

LawResult check_direction(const attest_kernel& kernel, const Case& c, Direction direction) {
  return guarded([&] {
    require_claimed(kernel, c.problem, direction);
    const InputValues values = make_values(c.problem, c.values, c.seed);
    const auto truth =
        truth_of(kernel, c.problem, values, direction, c, sample_of(c.problem, c.seed));
    const KernelRun run = complete(kernel, c.problem, values, direction, c);
    LawResult result = judged(truth->judge(run));
    if (result.verdict != Verdict::passed) return result;
    const auto decoys = truth->passing_decoys(run);
    if (c.problem.visible_pairs() == 0) {
      return LawResult{Verdict::vacuous, "no query sees a key", result.comparisons};
    }
    if (!decoys.empty()) {
      return LawResult{Verdict::vacuous, "would also pass: " + decoys.front(), result.comparisons};
    }
    return result;
  });
}

LawResult check_ones(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem p = c.problem;
    p.sinks = Sinks::none;         // they take a part of every weight
    p.shared_kv = SharedKv::none;  // V is no part of K
    const InputValues values = make_values(p, Values::ones, c.seed);
    if (p.visible_pairs() == 0) stop(Verdict::vacuous, "no query sees a key");
    const KernelRun run = complete(kernel, p, values, Direction::forward, c);
    const auto truth = truth_of(kernel, p, values, Direction::forward, c);
    const Tensor& exact = truth->forward().O;
    // Rows without a visible key keep what the convention says; all others are 1.
    const Tensor ones = mapped(exact, [&](auto b, auto s, auto h, auto x) {
      const double value = exact(b, s, h, x);
      return value == 0 || std::isnan(value) ? value : 1.0;
    });
    return judged({compare(run.O.view(), ones, truth->forward_bounds().O)});
  });
}

}  // namespace

std::vector<Law> reference_laws() {
  return {{"reference_forward", "O and LSE lie within their derived bounds of the exact result",
           [](const attest_kernel& k, const Case& c) {
             return check_direction(k, c, Direction::forward);
           }},
          {"reference_backward",
           "dQ, dK, dV, dSinks and dBias lie within their derived bounds of the exact gradients",
           [](const attest_kernel& k, const Case& c) {
             return check_direction(k, c, Direction::backward);
           }},
          {"ones", "V = 1 gives O = 1 within the bound", check_ones}};
}

}  // namespace attest::proptest
