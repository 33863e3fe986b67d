// Laws of sinks, which need no reference.
#include <algorithm>
#include <cmath>

#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;

Problem with_sinks(Problem problem, Sinks sinks) {
  problem.sinks = sinks;
  return problem;
}

// Sinks of -inf are none: every bit is that of the call without sinks, and dSinks is 0.
LawResult check_sinks_off(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    const Problem off = with_sinks(c.problem, Sinks::off),
                  none = with_sinks(c.problem, Sinks::none);
    require_claimed(kernel, off, Direction::forward);
    const Direction direction = furthest(kernel, none);
    require_pairs(kernel, none, direction);
    const InputValues in = make_values(none, c.values, c.seed);
    const KernelRun without = complete(kernel, none, in, direction, c);
    KernelRun with = complete(kernel, off, in, direction, c);
    const Tensor gradients = with.dSinks;
    with.dSinks = without.dSinks;
    LawResult result = same_bits(without, with, direction, "sinks of -inf are not none");
    if (result.verdict != Verdict::passed || direction == Direction::forward) return result;
    for (std::int64_t h = 0; h < off.num_heads_q; ++h) {
      if (gradients(h) != 0) stop(Verdict::violated, "dSinks is not 0 where the sink is -inf");
    }
    return result;
  });
}

// How much a weight grows at most with its logarithm; weights are not above 1.
double weight_growth(double log_weight, double growth) {
  const double weight = std::exp(log_weight);
  if (growth < 1) return weight * std::expm1(growth);
  return std::exp(std::min(log_weight + growth, 0.0)) - weight;
}

// A sink is one more part of a row, with O = 0 and its score as LSE: what a call without sinks
// returns, merged with it, is what the call with sinks returns.
LawResult check_sink_merge(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    if ((kernel.description.features & ATTEST_LSE) == 0) {
      stop(Verdict::unsupported, "not claimed: LSE");
    }
    const Problem none = plain_problem(kernel, c.problem);
    Problem drawn = with_sinks(none, Sinks::drawn);
    drawn.sinks_seed = c.problem.sinks == Sinks::drawn ? c.problem.sinks_seed : c.seed;
    require_claimed(kernel, drawn, Direction::forward);
    require_pairs(kernel, none, Direction::forward);
    const Solved without(kernel, none, make_values(none, c.values, c.seed), Direction::forward, c);
    require_right(without, "without sinks: ");
    const Solved with(kernel, drawn, without.values, Direction::forward, c);
    const std::vector<float> sinks = drawn.sink_scores();
    const double unit = kernel.description.numerics.lse_base_two != 0 ? std::log(2.0) : 1;
    const reference::ForwardBounds& bounds = without.truth.forward_bounds();
    Tensor O = no_error(without.run.O).sigma, LSE = no_error(without.run.LSE).sigma;
    ErrorBound of_O = no_error(without.run.O), of_LSE = no_error(without.run.LSE);
    const auto merged_lse = [&](std::int64_t b, std::int64_t h, std::int64_t i) {
      const double lse = unit * without.run.LSE(b, h, i), sink = sinks[static_cast<std::size_t>(h)];
      const double most = std::max(lse, sink);
      return most + std::log(std::exp(lse - most) + std::exp(sink - most));
    };
    mapped(LSE, [&](auto b, auto h, auto i, auto) {
      LSE.set(merged_lse(b, h, i) / unit, b, h, i);
      for (Tensor ErrorBound::*strength :
           {&ErrorBound::deterministic, &ErrorBound::probabilistic, &ErrorBound::sigma}) {
        (of_LSE.*strength).set((bounds.LSE.*strength)(b, h, i), b, h, i);
      }
      return 0.0;
    });
    mapped(O, [&](auto b, auto i, auto h, auto x) {
      const double log_weight = unit * without.run.LSE(b, h, i) - merged_lse(b, h, i);
      const double weight = std::exp(log_weight), value = without.run.O(b, i, h, x);
      O.set(weight * value, b, i, h, x);
      // The weight of the keys grows at most as LSE does.
      for (Tensor ErrorBound::*strength :
           {&ErrorBound::deterministic, &ErrorBound::probabilistic, &ErrorBound::sigma}) {
        const double growth = weight_growth(log_weight, unit * (bounds.LSE.*strength)(b, h, i));
        const double own = (bounds.O.*strength)(b, i, h, x);
        (of_O.*strength).set(weight * own + growth * (std::abs(value) + own), b, i, h, x);
      }
      return 0.0;
    });
    const reference::ForwardBounds& of_sinks = with.truth.forward_bounds();
    return judged_with_truth({compare_pair(with.run.O.view(), O.view(), of_sinks.O, of_O),
                              compare_pair(with.run.LSE.view(), LSE.view(), of_sinks.LSE, of_LSE)},
                             with);
  });
}

}  // namespace

std::vector<Law> sink_laws() {
  const auto of_sinks = [](Law law) {
    law.features = ATTEST_SINKS;
    return law;
  };
  return {of_sinks({"sinks_off", "sinks of -inf are none, to the bit, and their gradient is 0",
                    check_sinks_off}),
          of_sinks(replacing_mask({"sink_merge",
                                   "a result without sinks, merged with them, is that with them",
                                   check_sink_merge}))};
}

}  // namespace attest::proptest
