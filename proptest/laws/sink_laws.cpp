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

// A second head, where there is one: sinks of its own need another.
Problem of_several_heads(Problem p) {
  if (p.strides == Strides::broadcast) p.strides = Strides::packed;
  if (p.num_heads_q == 1) p.num_heads_q = p.num_heads_kv = 2;
  return p;
}

// The sink of the first query head is changed: its K/V head may have other gradients, itself other
// results, and nothing else another bit.
LawResult check_own_sinks(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_deterministic(kernel);
    Problem drawn = of_several_heads(c.problem);
    if (drawn.sinks != Sinks::drawn) {
      drawn.sinks = Sinks::drawn;
      drawn.sinks_seed = c.seed;
    }
    const Direction direction = furthest(kernel, drawn);
    require_pairs(kernel, drawn, direction);
    Problem other = drawn;
    other.given_sinks = drawn.sink_scores();
    other.sinks = Sinks::given;
    float& first = other.given_sinks.front();
    first = std::isfinite(first) ? first + 1 : 1;
    const InputValues in = make_values(drawn, c.values, c.seed);
    const KernelRun before = complete(kernel, drawn, in, direction, c);
    KernelRun after = complete(kernel, other, in, direction, c);
    const auto put_back = [](Tensor& to, const Tensor& from, std::size_t axis) {
      if (to.view().rank() == 0) return;
      const Tensor own = to;
      to = mapped(own, [&](auto b, auto s, auto h, auto x) {
        return (axis == 1 ? s : h) == 0 ? from(b, s, h, x) : own(b, s, h, x);
      });
    };
    put_back(after.O, before.O, 2);
    put_back(after.LSE, before.LSE, 1);
    if (direction == Direction::backward) {
      for (Tensor KernelRun::*gradient : {&KernelRun::dQ, &KernelRun::dK, &KernelRun::dV}) {
        put_back(after.*gradient, before.*gradient, 2);
      }
      after.dSinks.set(before.dSinks(0), 0);
      after.dBias = before.dBias;  // a sum over heads, perhaps
    }
    return same_bits(before, after, direction, "the sink of one head changes another");
  });
}

// A number that few bits hold, of a head: products with a power of 2 are exact in every type.
double score_of_head(std::uint64_t seed, std::int64_t head) {
  constexpr std::uint64_t kQuarters = 17;  // -2 to 2
  return static_cast<double>(mix(seed, static_cast<std::uint64_t>(head)) % kQuarters) / 4 - 2;
}

// The first columns of Q and K give an appended key the score of the head's sink and the others 0.
struct KeyInPlaceOfSink {
  Problem sinks, key;  // the same results: with sinks, and with one key more
  InputValues of_sinks, of_key;
  double scale = 1;

  KeyInPlaceOfSink(const attest_kernel& kernel, const Case& c) {
    Problem none = plain_problem(kernel, c.problem);
    none.softmax_scale = scale = std::exp2(std::round(std::log2(1 / std::sqrt(none.head_dim_qk))));
    sinks = with_sinks(none, Sinks::given);
    for (std::int64_t h = 0; h < none.num_heads_q; ++h) {
      sinks.given_sinks.push_back(static_cast<float>(scale * score_of_head(c.seed, h)));
    }
    key = none;
    ++key.seqlen_k;
    of_sinks = make_values(none, c.values, c.seed);
    of_key = make_values(key, c.values, c.seed);
    of_sinks.Q = mapped(of_sinks.Q, [&](auto b, auto i, auto h, auto x) {
      return x == 0 ? score_of_head(c.seed, h) : of_sinks.Q(b, i, h, x);
    });
    of_sinks.K = mapped(of_sinks.K, [&](auto b, auto j, auto h, auto x) {
      return x == 0 ? 0 : of_sinks.K(b, j, h, x);
    });
    const std::int64_t last = none.seqlen_k;
    of_key.Q = of_sinks.Q;
    of_key.dO = of_sinks.dO;
    of_key.dLSE = of_sinks.dLSE;
    of_key.K = mapped(of_key.K, [&](auto b, auto j, auto h, auto x) {
      return j == last ? (x == 0 ? 1.0 : 0.0) : of_sinks.K(b, j, h, x);
    });
    of_key.V = mapped(of_key.V, [&](auto b, auto j, auto h, auto x) {
      return j == last ? 0 : of_sinks.V(b, j, h, x);
    });
  }
};

using Map = std::function<Tensor(const Tensor&)>;

ErrorBound mapped_bound(const ErrorBound& bound, const Map& map) {
  return {map(bound.deterministic), map(bound.probabilistic), map(bound.sigma)};
}

Comparison compared(const Tensor& one, const ErrorBound& of_one, const Tensor& other,
                    const ErrorBound& of_other) {
  return compare_pair(one.view(), other.view(), of_one, of_other);
}

// All but the first column, which makes the score of the key.
Tensor other_columns(const Tensor& of) {
  return mapped(of, [&](auto n, auto i, auto h, auto x) { return x == 0 ? 0.0 : of(n, i, h, x); });
}

// The keys that both problems have.
Comparison compared_keys(const Tensor& one, const ErrorBound& of_one, const Tensor& other,
                         const ErrorBound& of_other) {
  const auto first_keys = [](const Tensor& like) -> Map {
    return [&like](const Tensor& of) {
      return mapped(like, [&](auto n, auto j, auto h, auto x) { return of(n, j, h, x); });
    };
  };
  return compared(one, of_one, first_keys(one)(other),
                  mapped_bound(of_other, first_keys(of_one.sigma)));
}

// dK of the key is scale times the sum of dSinks times what Q has, over the heads of a group.
Comparison compared_sinks(const KeyInPlaceOfSink& made, std::uint64_t seed, const Tensor& dSinks,
                          const ErrorBound& of_sinks, const Tensor& dK, const ErrorBound& of_dK) {
  const Problem& p = made.sinks;
  const Tensor zeros("sum of dSinks", DType::f64, {{"num_heads_kv", p.num_heads_kv, 0}});
  const auto sinks = [&](const Tensor& values, bool sizes) {
    Tensor sums = zeros;
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      const double factor = made.scale * score_of_head(seed, h);
      const std::int64_t kv = h / p.group_size();
      sums.set(sums(kv) + (sizes ? std::abs(factor) : factor) * values(h), kv);
    }
    return sums;
  };
  const auto of_key = [&](const Tensor& values) {
    Tensor sums = zeros;
    for (std::int64_t n = 0; n < p.batch; ++n) {
      for (std::int64_t h = 0; h < p.num_heads_kv; ++h) {
        sums.set(sums(h) + values(n, p.seqlen_k, h, 0), h);
      }
    }
    return sums;
  };
  return compared(sinks(dSinks, false),
                  mapped_bound(of_sinks, [&](const Tensor& bound) { return sinks(bound, true); }),
                  of_key(dK), mapped_bound(of_dK, of_key));
}

// A sink is a key of its score with V = 0: all results of the other keys are the same, and dSinks
// are what the key's K receives.
LawResult check_sink_as_key(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    const KeyInPlaceOfSink made(kernel, c);
    require_claimed(kernel, made.sinks, Direction::forward);
    const Direction direction = std::min(furthest(kernel, made.sinks), furthest(kernel, made.key));
    require_pairs(kernel, made.sinks, direction);
    require_pairs(kernel, made.key, direction);
    const Solved sinks(kernel, made.sinks, made.of_sinks, direction, c),
        key(kernel, made.key, made.of_key, direction, c);
    const reference::ForwardBounds &one = sinks.truth.forward_bounds(),
                                   &other = key.truth.forward_bounds();
    std::vector<Comparison> found{compared(sinks.run.O, one.O, key.run.O, other.O)};
    if ((kernel.description.features & ATTEST_LSE) != 0) {
      found.push_back(compared(sinks.run.LSE, one.LSE, key.run.LSE, other.LSE));
    }
    if (direction == Direction::forward) return judged_with_truth(found, sinks);
    const reference::BackwardBounds &a = sinks.truth.backward_bounds(sinks.run),
                                    &b = key.truth.backward_bounds(key.run);
    found.insert(found.end(),
                 {compared(other_columns(sinks.run.dQ), mapped_bound(a.dQ, other_columns),
                           other_columns(key.run.dQ), mapped_bound(b.dQ, other_columns)),
                  compared_keys(sinks.run.dK, a.dK, key.run.dK, b.dK),
                  compared_keys(sinks.run.dV, a.dV, key.run.dV, b.dV),
                  compared_sinks(made, c.seed, sinks.run.dSinks, a.dSinks, key.run.dK, b.dK)});
    return judged_with_truth(found, sinks);
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
                                   check_sink_merge})),
          of_sinks(replacing_mask(
              {"sink_as_key", "a sink is a key of its score with V = 0", check_sink_as_key})),
          of_sinks({"own_sinks", "the sink of a head changes no bit of another", check_own_sinks})};
}

}  // namespace attest::proptest
