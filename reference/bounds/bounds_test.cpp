#include "reference/bounds/bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/testing/catch.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

struct Bounds {
  ForwardBounds forward;
  BackwardBounds backward;

  std::vector<const ErrorBound*> all() const {
    return {&forward.O, &forward.LSE, &backward.dQ, &backward.dK, &backward.dV};
  }
};

Bounds bounds_of(const Setting& in, const attest_numerics& declared) {
  const Numerics numerics = resolve(declared, DType::f32);
  const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
  const Forward exact = forward(in.problem, {}, Q, K, V);
  const Backward gradients = backward(in.problem, Q, K, V, in.cotangents());
  return {forward_bounds(in.problem, {}, numerics, Q, K, V, exact),
          backward_bounds(in.problem, {}, numerics, Q, K, V, in.cotangents(),
                          {exact.O.view(), exact.LSE.view()}, exact, gradients)};
}

void set_key(Setting& in, std::int64_t key, double value) {
  for (std::int64_t c = 0; c < in.K.view().extent(3); ++c) in.K.set(value, 0, key, 0, c);
  for (std::int64_t c = 0; c < in.V.view().extent(3); ++c) in.V.set(value, 0, key, 0, c);
}

// The strengths of a bound, and whether two bounds agree in all of them.
const std::vector<Tensor ErrorBound::*> kStrengths{&ErrorBound::deterministic,
                                                   &ErrorBound::probabilistic, &ErrorBound::sigma};

bool same(const ErrorBound& a, const ErrorBound& b) {
  return std::all_of(kStrengths.begin(), kStrengths.end(), [&](Tensor ErrorBound::*strength) {
    const Tensor &x = a.*strength, &y = b.*strength;
    return std::equal(x.doubles(), x.doubles() + x.view().size(), y.doubles());
  });
}

TEST_CASE("what a key holds that nobody sees moves no bound", "[reference]") {
  attest_numerics cast_after{};
  cast_after.p_cast = 1 + ATTEST_BF16;
  cast_after.sum_after_cast = 1;
  for (const attest_numerics& declared : {attest_numerics{}, cast_after}) {
    for (const std::string text :
         {"hq=2,hkv=1,sq=4,sk=6,d=3,mask=causal_tl", "sq=70,sk=6,d=3,softcap=2,mask=lengths_5"}) {
      Setting in(text, 1, 1, 5);
      REQUIRE(!in.problem.mask.visible(in.problem.sequences()[0], 3, 5));
      set_key(in, 5, 0);
      const Bounds clean = bounds_of(in, declared);
      for (const double value : {kNan, kInfinity, -kInfinity, 1e300}) {
        INFO(text << " with " << value);
        set_key(in, 5, value);
        const Bounds got = bounds_of(in, declared);
        for (std::size_t k = 0; k < 5; ++k) CHECK(same(*clean.all()[k], *got.all()[k]));
      }
    }
  }
}

TEST_CASE("NaN in a visible key leaves the bounds of other rows alone", "[reference]") {
  Setting in("sq=5,sk=5,d=3,mask=causal_tl", 1, 1, 5);
  const Bounds clean = bounds_of(in, {});
  set_key(in, 3, kNan);
  const Bounds got = bounds_of(in, {});
  for (const auto strength : kStrengths) {
    for (std::int64_t i = 0; i < 3; ++i) {
      for (std::int64_t c = 0; c < 3; ++c) {
        CHECK((got.forward.O.*strength)(0, i, 0, c) == (clean.forward.O.*strength)(0, i, 0, c));
        CHECK((got.backward.dQ.*strength)(0, i, 0, c) == (clean.backward.dQ.*strength)(0, i, 0, c));
      }
    }
  }
}

// With one key LSE is the score itself, so its bound must hold the score's error however large; O
// is v whatever the score. An e^error formed in float64 would end near 700.
TEST_CASE("errors of scores too large for exp keep their size in LSE", "[reference]") {
  Setting in("sq=3,sk=1,d=4,scale=1e7", 1, 1, 5);
  attest_numerics rounded{};
  rounded.scaled_q_roundoff = 0x1p-9;
  const Bounds bounds = bounds_of(in, rounded);
  double largest = 0;
  for (std::int64_t i = 0; i < 3; ++i) {
    double magnitude = 0;
    for (std::int64_t c = 0; c < 4; ++c) {
      magnitude += in.problem.scale() * std::abs(in.Q(0, i, 0, c) * in.K(0, 0, 0, c));
    }
    const double score_error = magnitude * rounded.scaled_q_roundoff;
    largest = std::max(largest, score_error);
    CHECK(bounds.forward.LSE.deterministic(0, 0, i) >= score_error);
    CHECK(bounds.forward.LSE.probabilistic(0, 0, i) >= score_error);
    for (std::int64_t c = 0; c < 4; ++c) {
      const double v = std::abs(in.V(0, 0, 0, c));
      CHECK(bounds.forward.O.deterministic(0, i, 0, c) <= 64 * unit_roundoff(DType::f32) * v);
    }
  }
  constexpr double kLargestLogarithm = 710;  // of a finite float64
  REQUIRE(largest > kLargestLogarithm);
}

// Two keys with scores this wrong: the kernel may weigh either one, hidden or not in float64.
TEST_CASE("errors of scores too large for exp leave O among the values", "[reference]") {
  Setting in("sq=2,sk=2,d=4,scale=1e7", 1, 1, 5);
  attest_numerics rounded{};
  rounded.scaled_q_roundoff = 0x1p-9;
  const Bounds bounds = bounds_of(in, rounded);
  const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  for (std::int64_t i = 0; i < 2; ++i) {
    for (std::int64_t c = 0; c < 4; ++c) {
      const double O = exact.O(0, i, 0, c);
      const double farthest =
          std::max(std::abs(in.V(0, 0, 0, c) - O), std::abs(in.V(0, 1, 0, c) - O));
      CHECK(bounds.forward.O.deterministic(0, i, 0, c) >= farthest);
      CHECK(bounds.forward.O.probabilistic(0, i, 0, c) >= farthest);
      CHECK(bounds.forward.O.deterministic(0, i, 0, c) <= 2 * (farthest + std::abs(O)));
    }
  }
}

// Equal scores whose computed values rise from key to key, as rounding may make them, and an
// exponential that is wrong by all it may: the weights of early keys grow with every rescale.
TEST_CASE("maxima that only rounding makes rise cost a rescale each", "[reference]") {
  constexpr std::int64_t kKeys = 2048;
  Setting in("sq=1,sk=2048,d=8", 1, 1, 5);
  attest_numerics chains{};
  chains.summation_depth = 32;
  const Numerics numerics = resolve(chains, DType::f32);
  const double u = numerics.accumulator_roundoff;
  for (std::int64_t c = 0; c < 8; ++c) {
    in.Q.set(1, 0, 0, 0, c);
    for (std::int64_t j = 0; j < kKeys; ++j) {
      in.K.set(c % 2 == 0 ? 1 : -1, 0, j, 0, c);
      in.V.set(2 * j < kKeys ? -1 : 1, 0, j, 0, c);
    }
  }
  const double score_error = 8 * in.problem.scale() * gamma(8, u);
  double maximum = -kInfinity, sum = 0, weighted = 0;
  for (std::int64_t j = 0; j < kKeys; ++j) {
    const double score = score_error * (2 * static_cast<double>(j) / kKeys - 1);
    const double rescale = std::exp(maximum - score) * (1 + 2 * numerics.exp_ulps * u);
    maximum = score;
    sum = sum * rescale + 1;
    weighted = weighted * rescale + in.V(0, j, 0, 0);
  }
  const double error = std::abs(weighted / sum);
  const double lse_error = std::abs(maximum + std::log(sum) - std::log(kKeys));
  const Bounds bounds = bounds_of(in, chains);
  CHECK(error <= bounds.forward.O.deterministic(0, 0, 0, 0));
  CHECK(lse_error <= bounds.forward.LSE.deterministic(0, 0, 0));
  // Which order the keys come out in is chance: the probabilistic bound counts on fewer rises.
  CHECK(bounds.forward.O.probabilistic(0, 0, 0, 0) < bounds.forward.O.deterministic(0, 0, 0, 0));
  // Not one of these rises is a record of the exact scores: where no error can reorder them, the
  // bound does not cover this.
  for (std::int64_t c = 0; c < 8; ++c) in.Q.set(0, 0, 0, 0, c);
  const Bounds apart = bounds_of(in, chains);
  CHECK(error > apart.forward.O.deterministic(0, 0, 0, 0));
  CHECK(lse_error > apart.forward.LSE.deterministic(0, 0, 0));
}

// Tiles in descending order find larger and larger keys; a sink above them all, added to the sum at
// the end, is in no maximum before.
TEST_CASE("a sink hides no rise of the keys before it", "[reference]") {
  constexpr std::int64_t kKeys = 1024;
  Setting in("sq=1,sk=1024,d=1,scale=1", 1, 1, 5);
  constexpr double kStep = 0x1p-8, kSink = kStep * kKeys + 2;
  in.problem.sinks = Sinks::given;
  in.problem.given_sinks = {static_cast<float>(kSink)};
  attest_numerics declared{};
  declared.exp_ulps = 64;
  const Numerics numerics = resolve(declared, DType::f32);
  in.Q.set(1, 0, 0, 0, 0);
  for (std::int64_t j = 0; j < kKeys; ++j) {
    in.K.set(kStep * static_cast<double>(kKeys - 1 - j), 0, j, 0, 0);
    in.V.set(j == kKeys - 1 ? 3000 : 3, 0, j, 0, 0);
  }
  double maximum = -kInfinity, sum = 0, weighted = 0;
  for (std::int64_t j = kKeys - 1; j >= 0; --j) {
    const double score = in.K(0, j, 0, 0);
    const double wrong = 1 + numerics.exp_ulps * numerics.accumulator_roundoff;
    const double rescale = std::exp(maximum - score) * wrong;
    maximum = score;
    sum = sum * rescale + 1;
    weighted = weighted * rescale + in.V(0, j, 0, 0);
  }
  sum += std::exp(kSink - maximum);
  const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  const Bounds bounds = bounds_of(in, declared);
  const double error = std::abs(weighted / sum - exact.O(0, 0, 0, 0));
  CHECK(error <= bounds.forward.O.probabilistic(0, 0, 0, 0));
  CHECK(std::abs(maximum + std::log(sum) - exact.LSE(0, 0, 0)) <=
        bounds.forward.LSE.probabilistic(0, 0, 0));
}

// Equal terms of one chain in float32 err together, whatever sequence they are of.
TEST_CASE("dSinks of equal rows of many sequences is one chain", "[reference]") {
  for (const char* text : {"b=128,sq=128,sk=2,d=4", "sq=16384,sk=2,d=4", "b=4096,sq=1,sk=2,d=4"}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      INFO(text << " " << seed);
      Setting in(text, 1, 1, seed);
      constexpr double kSink = 0.25;
      in.problem.sinks = Sinks::given;
      in.problem.given_sinks = {static_cast<float>(kSink)};
      const auto repeat = [](Tensor& tensor, std::int64_t period) {
        double* const values = tensor.doubles();
        for (std::int64_t e = period; e < tensor.view().size(); ++e) values[e] = values[e - period];
      };
      repeat(in.Q, 4);
      repeat(in.dO, 4);
      repeat(in.K, 8);
      repeat(in.V, 8);
      std::fill_n(in.dLSE.doubles(), in.dLSE.view().size(), 0.0);
      const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
      const Forward exact = forward(in.problem, {}, Q, K, V);
      const double dSinks = backward(in.problem, Q, K, V, in.cotangents()).dSinks(0);
      double delta = 0;
      for (std::int64_t c = 0; c < 4; ++c) delta += in.dO(0, 0, 0, c) * exact.O(0, 0, 0, c);
      const auto P = static_cast<float>(std::exp(kSink - exact.LSE(0, 0, 0)));
      const float term = -P * static_cast<float>(delta);
      float chain = 0;
      for (std::int64_t row = 0; row < in.dLSE.view().size(); ++row) chain += term;
      const Bounds bounds = bounds_of(in, {});
      CHECK(std::abs(static_cast<double>(chain) - dSinks) <=
            bounds.backward.dSinks.probabilistic(0));
    }
  }
}

TEST_CASE("a delta that cancels to exactly 0 leaves the reference's own rounding", "[reference]") {
  // Weights e, 1, 1/e, e, 1, e, e of values 1 -1 0 0 1 0 -1: O and delta are 0, and so is dK where
  // the value is. A kernel that adds e - 1 + 1 - e finds that; normalised weights do not.
  Setting in("sq=1,sk=7,d=1", 1, 1, 5);
  const std::vector<double> keys{-1, 0, 1, -1, 0, -1, -1}, values{1, -1, 0, 0, 1, 0, -1};
  in.Q.set(-1, 0, 0, 0, 0);
  in.dO.set(1, 0, 0, 0, 0);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    in.K.set(keys[j], 0, static_cast<std::int64_t>(j));
    in.V.set(values[j], 0, static_cast<std::int64_t>(j));
  }
  const TensorView &Q = in.Q.view(), &K = in.K.view(), &V = in.V.view();
  const Cotangents cotangents{in.dO.view()};
  const Forward exact = forward(in.problem, {}, Q, K, V);
  const Backward gradients = backward(in.problem, Q, K, V, cotangents);
  Forward stored = exact;
  stored.O.set(0, 0, 0);
  const ErrorBound bound =
      backward_bounds(in.problem, {}, resolve(attest_numerics{}, DType::f32), Q, K, V, cotangents,
                      {stored.O.view(), stored.LSE.view()}, exact, gradients)
          .dK;
  bool off = false;
  for (std::int64_t j = 0; j < 7; ++j) {
    if (in.V(0, j) != 0) continue;
    off = off || gradients.dK(0, j) != 0;
    CHECK(std::abs(gradients.dK(0, j)) <= bound.probabilistic(0, j));
    CHECK(std::abs(gradients.dK(0, j)) <= bound.deterministic(0, j));
  }
  CHECK(off);
}

TEST_CASE("the probabilistic bound never exceeds the proved one, and neither is negative",
          "[reference]") {
  attest_numerics low{};
  low.p_cast = 1 + ATTEST_BF16;
  for (const std::string& text : feature_problems()) {
    for (const double factor : {1.0, 30.0}) {
      const Setting in(text, factor, 1, 9);
      for (const attest_numerics& declared : {attest_numerics{}, low}) {
        const Bounds bounds = bounds_of(in, declared);
        for (const ErrorBound* bound : bounds.all()) {
          INFO(text);
          for (std::int64_t e = 0; e < bound->sigma.view().size(); ++e) {
            CHECK(bound->probabilistic.doubles()[e] <= bound->deterministic.doubles()[e]);
            CHECK(bound->probabilistic.doubles()[e] >= 0);
            CHECK(std::isfinite(bound->sigma.doubles()[e]));
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace attest::reference
