// Laws of an additive bias, which need no reference.
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "core/tensor.hpp"
#include "proptest/judge/limits.hpp"
#include "proptest/laws/catalogue.hpp"
#include "proptest/laws/trials/trial.hpp"

namespace attest::proptest {
namespace {

using reference::ErrorBound;

constexpr double kHidden = -std::numeric_limits<double>::infinity();
constexpr std::array<bool, 4> kEveryAxis{true, true, true, true};

// A bias in float32 with the values value(sequence, head, query, key).
template <class Value>
Bias given_bias(const Problem& p, const Value& value) {
  GivenBias given{{p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_k}, {}};
  for (const Sequence& sequence : p.sequences()) {
    for (std::int64_t h = 0; h < p.num_heads_q; ++h) {
      for (std::int64_t i = 0; i < p.seqlen_q; ++i) {
        for (std::int64_t j = 0; j < p.seqlen_k; ++j) {
          given.values.push_back(value(sequence, h, i, j));
        }
      }
    }
  }
  return {Bias::Kind::given, kEveryAxis, true, 0,
          std::make_shared<const GivenBias>(std::move(given))};
}

// Before a check for content: a bias for each pair is held in memory.
void require_few_pairs(const Problem& p) {
  constexpr double kMostPairs = 0x1p22;
  const double pairs = static_cast<double>(p.batch) * static_cast<double>(p.num_heads_q) *
                       static_cast<double>(p.seqlen_q) * static_cast<double>(p.seqlen_k);
  if (pairs > kMostPairs) stop(Verdict::unsupported, "more pairs than are given a bias each");
}

bool sees_a_key(const Problem& p, const Sequence& sequence, std::int64_t i) {
  const KeyRange band = p.mask.band(sequence, i);
  for (std::int64_t j = band.begin; j < band.end; ++j) {
    if (p.mask.visible(sequence, i, j)) return true;
  }
  return false;
}

InputValues without_dlse(InputValues in) {
  in.dLSE = mapped(in.dLSE, [](auto, auto, auto, auto) { return 0.0; });
  return in;
}

std::vector<Comparison> same_gradients(const Solved& a, const Solved& b) {
  const auto of_a = a.truth.backward_bounds(a.run), of_b = b.truth.backward_bounds(b.run);
  return {compare_pair(a.run.dQ.view(), b.run.dQ.view(), of_a.dQ, of_b.dQ),
          compare_pair(a.run.dK.view(), b.run.dK.view(), of_a.dK, of_b.dK),
          compare_pair(a.run.dV.view(), b.run.dV.view(), of_a.dV, of_b.dV)};
}

// A term of a whole row, as a bias that depends on no key has it, moves LSE by itself and nothing
// else: not O, nor a gradient.
LawResult check_row_constant(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem without = c.problem, with = c.problem;
    without.bias = {};
    with.bias = {Bias::Kind::drawn, {true, true, true, false}, true, c.seed};
    without.sinks = with.sinks = Sinks::none;  // they have no such term
    require_claimed(kernel, with, Direction::forward);
    const Direction direction = furthest(kernel, with);
    require_pairs(kernel, without, direction);
    const Solved first(kernel, without, make_values(without, c.values, c.seed), direction, c);
    const Solved moved(kernel, with, first.values, direction, c);
    const reference::ForwardBounds &a = first.truth.forward_bounds(),
                                   &b = moved.truth.forward_bounds();
    std::vector<Comparison> found{compare_pair(moved.run.O.view(), first.run.O.view(), b.O, a.O)};
    if ((kernel.description.features & ATTEST_LSE) != 0) {
      const double unit = kernel.description.numerics.lse_base_two != 0 ? std::log(2.0) : 1;
      Tensor LSE = no_error(first.run.LSE).sigma;
      for (const Sequence& sequence : with.sequences()) {
        for (std::int64_t h = 0; h < with.num_heads_q; ++h) {
          for (std::int64_t i = 0; i < sequence.q_length; ++i) {
            const bool some = sees_a_key(with, sequence, i);
            const double term = some ? with.bias_at(sequence.number, h, i, 0) / unit : 0;
            const std::int64_t row = sequence.q_begin + i;
            LSE.set(first.run.LSE(sequence.tensor_batch, h, row) + term, sequence.tensor_batch, h,
                    row);
          }
        }
      }
      found.push_back(compare_pair(moved.run.LSE.view(), LSE.view(), b.LSE, a.LSE));
    }
    if (direction == Direction::backward) {
      for (Comparison& comparison : same_gradients(moved, first)) {
        found.push_back(std::move(comparison));
      }
    }
    return judged_with_truth(found, moved);
  });
}

bool is_power_of_two(std::int64_t heads) { return (heads & (heads - 1)) == 0; }

// ALiBi's term as a bias. Slopes are powers of two, so that it is a number of float32.
LawResult check_alibi(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    if ((kernel.description.features & ATTEST_ALIBI) == 0) {
      stop(Verdict::unsupported, "not claimed: ALiBi");
    }
    Problem alibi = c.problem;
    alibi.bias = {};
    alibi.alibi = Alibi::standard;
    constexpr std::int64_t kMostHeads = 8;
    if (!is_power_of_two(alibi.num_heads_q) || alibi.num_heads_q > kMostHeads) {
      alibi.num_heads_q = alibi.num_heads_kv = 1;
    }
    require_few_pairs(alibi);
    Problem biased = alibi;
    biased.alibi = Alibi::none;
    const std::vector<float> slopes = alibi.alibi_slopes();
    biased.bias = given_bias(alibi, [&](const Sequence& sequence, auto h, auto i, auto j) {
      const std::int64_t distance = std::abs(alibi.mask.aligned_key(sequence, i) - j);
      return -static_cast<double>(slopes[static_cast<std::size_t>(h)]) *
             static_cast<double>(distance);
    });
    require_claimed(kernel, biased, Direction::forward);
    const Direction direction = furthest(kernel, alibi);
    require_pairs(kernel, alibi, direction);
    const Solved first(kernel, alibi, make_values(alibi, c.values, c.seed), direction, c);
    const Solved other(kernel, biased, first.values, direction, c);
    return judged_with_truth(first.truth.agreement(other.run, first.run), other);
  });
}

// A mask as a bias of 0 and -inf.
LawResult check_mask(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    require_unmasked(kernel);
    Problem masked = c.problem;
    masked.bias = {};
    if (!masked.mask.banded() && !masked.mask.boolean) {
      masked.mask.align = CausalAlign::bottom_right;
      masked.mask.window_right = 0;
      fit_window(kernel.description, masked);
    }
    require_few_pairs(masked);
    Problem biased = masked;
    biased.mask.remove_window();
    biased.mask.boolean = nullptr;
    biased.bias = given_bias(masked, [&](const Sequence& sequence, auto, auto i, auto j) {
      const bool own = i < sequence.q_length && j < sequence.k_length;
      return own && !masked.mask.visible(sequence, i, j) ? kHidden : 0.0;
    });
    require_claimed(kernel, biased, Direction::forward);
    require_claimed(kernel, masked, Direction::forward);
    const Direction direction = std::min(furthest(kernel, masked), furthest(kernel, biased));
    require_pairs(kernel, masked, direction);
    const Solved first(kernel, masked, make_values(masked, c.values, c.seed), direction, c);
    const Solved other(kernel, biased, first.values, direction, c);
    return judged_with_truth(first.truth.agreement(other.run, first.run), other);
  });
}

// Without a gradient of LSE dS of a row sums to 0: so does dBias over the keys that it depends on.
LawResult check_key_sums(const attest_kernel& kernel, const Case& c) {
  return guarded([&] {
    Problem p = c.problem;
    p.sinks = Sinks::none;  // they take a part
    if (p.bias.kind == Bias::Kind::none || !p.bias.axes[3]) {
      p.bias = {Bias::Kind::drawn, kEveryAxis, c.seed % 2 == 0, c.seed};
    }
    require_pairs(kernel, p, Direction::backward);
    const Solved s(kernel, p, without_dlse(make_values(p, c.values, c.seed)), Direction::backward,
                   c);
    const ErrorBound& of = s.truth.backward_bounds(s.run).dBias;
    std::vector<Axis> axes = p.bias_axes();
    axes[3].extent = 1;
    const Tensor zero("sum of dBias over keys", DType::f64, axes);
    const auto summed = [&](const Tensor& t) {
      Tensor sums = zero;
      mapped(t, [&](auto b, auto h, auto i, auto j) {
        sums.set(sums(b, h, i, 0) + t(b, h, i, j), b, h, i, 0);
        return 0.0;
      });
      return sums;
    };
    const ErrorBound bound{summed(of.deterministic), summed(of.probabilistic), summed(of.sigma)};
    return judged_with_truth(
        {compare_pair(summed(s.run.dBias).view(), zero.view(), bound, no_error(zero))}, s);
  });
}

}  // namespace

std::vector<Law> bias_laws() {
  const auto of_bias = [](Law law) {
    law.features = ATTEST_BIAS;
    return law;
  };
  Law key_sums{"bias_key_sums", "dBias of each row sums to 0 over the keys", check_key_sums};
  key_sums.directions = ATTEST_BACKWARD;
  return {
      of_bias({"bias_of_rows", "a bias that depends on no key moves LSE by itself, nothing else",
               check_row_constant}),
      of_bias({"bias_alibi", "ALiBi as a bias equals ALiBi", check_alibi}),
      of_bias({"bias_mask", "a mask as a bias of 0 and -inf equals the mask", check_mask}),
      of_bias(key_sums)};
}

}  // namespace attest::proptest
