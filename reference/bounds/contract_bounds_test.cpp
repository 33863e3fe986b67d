// Errors that a contract allows, committed in full where nothing else errs: each needs its own
// term.
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/testing/catch.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/score_error.hpp"
#include "reference/testing/setting.hpp"

namespace attest::reference {
namespace {

TEST_CASE("the exponential's error bounds its logarithm's in every accumulator", "[reference]") {
  for (const double u : {0x1p-8, 0x1p-11, 0x1p-24}) {
    for (const double ulps : {0.5, 2.0, 40.0}) {
      Numerics numerics;
      numerics.accumulator_roundoff = u;
      numerics.exp_ulps = ulps;
      CHECK(exponential_error(numerics) >= -std::log1p(-2 * ulps * u));
    }
  }
  Numerics hopeless;
  hopeless.exp_ulps = 1 / hopeless.accumulator_roundoff;
  CHECK(exponential_error(hopeless) == std::numeric_limits<double>::infinity());
}

TEST_CASE("bounds of a contract without a bound on the exponential are numbers", "[reference]") {
  Numerics hopeless;
  hopeless.exp_ulps = 1 / hopeless.accumulator_roundoff;
  for (const char* text : {"sq=2,sk=3,d=2", "sq=2,sk=3,d=2,softcap=2"}) {
    Setting in(text, 1, 1, 5);
    for (std::int64_t c = 0; c < 2; ++c) in.Q.set(0, 0, 0, 0, c);  // scores of 0
    const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
    const ForwardBounds bounds =
        forward_bounds(in.problem, {}, hopeless, in.Q.view(), in.K.view(), in.V.view(), exact);
    for (const std::int64_t row : {0, 1}) {
      INFO(text << " row " << row);
      CHECK(bounds.O.deterministic(0, row, 0, 0) >= 0);
      CHECK(bounds.O.probabilistic(0, row, 0, 0) >= 0);
      CHECK(bounds.LSE.deterministic(0, 0, row) >= 0);
    }
  }
}

TEST_CASE("all roundings of a product may go the same way", "[reference]") {
  Numerics numerics;
  numerics.input_roundoff = 0x1p-11;
  numerics.scaled_q_roundoff = 0x1p-9;
  const Problem problem = Problem::parse("sq=1,sk=1,d=3");
  const Group group = groups_of(problem).front();
  const Matrix ones = Matrix::Ones(1, 1);
  const ScoreError error =
      score_error(problem, numerics, group, 0, 0, {ones, {}}, Scores{Matrix::Zero(1, 1), {}});
  const double u = numerics.accumulator_roundoff, in = numerics.input_roundoff;
  // Three products and additions: each term passes through at most three roundings, and the scale.
  const double most = std::pow(1 + u, 4) * (1 + numerics.scaled_q_roundoff) * (1 + in) * (1 + in);
  CHECK(error.largest(0, 0) >= most - 1);
}

// Two keys have nearly all the weight; the others are flushed by the cast to f16, and the row sum,
// which adds what was cast, never sees them. One of the two comes first in either direction, so
// that the maximum does not rise among equals.
TEST_CASE("a row sum of cast weights misses those that underflow", "[reference]") {
  constexpr std::int64_t kKeys = 4096;
  constexpr double kSmallP = 0x1p-26;
  Setting in("sq=1,sk=4096,d=1,scale=1", 1, 1, 5);
  in.Q.set(1, 0, 0, 0, 0);
  for (std::int64_t j = 0; j < kKeys; ++j) {
    const bool heavy = j == 0 || j == kKeys - 1;
    in.K.set(heavy ? 0 : std::log(kSmallP), 0, j, 0, 0);
    in.V.set(heavy ? 1 : 0, 0, j, 0, 0);
  }
  attest_numerics declared{};
  declared.p_cast = 1 + ATTEST_F16;
  declared.sum_after_cast = 1;
  declared.summation_depth = 8;
  const Numerics numerics = resolve(declared, DType::f32);
  REQUIRE(numerics.p_underflow >= kSmallP);
  const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  const ForwardBounds bounds =
      forward_bounds(in.problem, {}, numerics, in.Q.view(), in.K.view(), in.V.view(), exact);
  const double O = 1, LSE = std::log(2.0);  // what such a kernel returns
  CHECK(std::abs(O - exact.O(0, 0, 0, 0)) <= bounds.O.deterministic(0, 0, 0, 0));
  CHECK(std::abs(LSE - exact.LSE(0, 0, 0)) <= bounds.LSE.deterministic(0, 0, 0));
}

TEST_CASE("splits of so many keys bound the merges", "[reference]") {
  const auto bound = [](const Setting& in, std::int32_t splits, std::int32_t keys) {
    attest_numerics declared{};
    declared.lse_splits = splits;
    declared.lse_split_keys = keys;
    const Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
    const ForwardBounds bounds = forward_bounds(in.problem, {}, resolve(declared, DType::f32),
                                                in.Q.view(), in.K.view(), in.V.view(), exact);
    return bounds.O.deterministic(0, 1, 0, 2);
  };
  const Setting in("sq=3,sk=65,d=4,mask=causal_br", 1, 1, 5);
  CHECK(bound(in, 256, 8) == bound(in, 9, 0));  // ceil(65 / 8)
  CHECK(bound(in, 7, 8) == bound(in, 7, 0));
  CHECK(bound(in, 256, 8) < bound(in, 256, 0));
}

struct Gradients {
  Setting in;
  Forward exact = forward(in.problem, {}, in.Q.view(), in.K.view(), in.V.view());
  Backward gradients =
      backward(in.problem, in.Q.view(), in.K.view(), in.V.view(), {in.dO.view(), nullptr});

  BackwardBounds bounds(const Numerics& numerics) const {
    return backward_bounds(in.problem, {}, numerics, in.Q.view(), in.K.view(), in.V.view(),
                           {in.dO.view(), nullptr}, {exact.O.view(), exact.LSE.view()}, exact,
                           gradients);
  }
};

// K = 0 leaves scores exact and weights equal; rows in pairs of opposite Q and equal dO make dK
// cancel, but not what the rounding of Q leaves of it.
TEST_CASE("dK may be made from the rounded Q", "[reference]") {
  Setting in("sq=8,sk=5,d=3", 1, 1, 5);
  for (std::int64_t c = 0; c < 3; ++c) {
    for (std::int64_t j = 0; j < 5; ++j) in.K.set(0, 0, j, 0, c);
    for (std::int64_t i = 0; i < 8; i += 2) {
      in.Q.set(-in.Q(0, i, 0, c), 0, i + 1, 0, c);
      in.dO.set(in.dO(0, i, 0, c), 0, i + 1, 0, c);
    }
  }
  const Gradients run{in};
  attest_numerics declared{};
  declared.scaled_q_roundoff = 0x1p-9;
  const Numerics numerics = resolve(declared, DType::f32);
  const BackwardBounds bounds = run.bounds(numerics);
  for (std::int64_t j = 0; j < 5; ++j) {
    for (std::int64_t l = 0; l < 3; ++l) {
      double magnitudes = 0;
      for (std::int64_t i = 0; i < 8; ++i) {
        double dS = 0;
        for (std::int64_t c = 0; c < 3; ++c) {
          dS += in.dO(0, i, 0, c) * (in.V(0, j, 0, c) - run.exact.O(0, i, 0, c)) / 5;
        }
        magnitudes += std::abs(dS * in.Q(0, i, 0, l));
      }
      const double error = in.problem.scale() * numerics.scaled_q_roundoff * magnitudes;
      CHECK(error <= bounds.dK.deterministic(0, j, 0, l));
      CHECK(error <= bounds.dK.probabilistic(0, j, 0, l));
    }
  }
}

// Scores of zero have t = 0, where 1 - t^2 moves only to second order, but by more than roundings.
TEST_CASE("a softcap's slope errs to second order at zero scores", "[reference]") {
  Setting in("sq=1,sk=2,d=2,softcap=0.5,scale=1", 1, 1, 5);
  in.Q.set(1, 0, 0, 0, 0);
  in.Q.set(1, 0, 0, 0, 1);
  in.K.set(30, 0, 0, 0, 0);
  in.K.set(-30, 0, 0, 0, 1);  // terms of 30 that cancel
  in.K.set(0, 0, 1, 0, 0);
  in.K.set(0, 0, 1, 0, 1);
  const Gradients run{in};
  attest_numerics declared{};
  declared.scaled_q_roundoff = 0x1p-9;
  const Numerics numerics = resolve(declared, DType::f32);
  // q_0 rounded down and q_1 up: P falls, and so does the slope.
  const double score = -60 * numerics.scaled_q_roundoff;
  const double t = std::tanh(score / in.problem.softcap);
  double dP = 0, delta = 0;
  for (std::int64_t c = 0; c < 2; ++c) {
    dP += in.dO(0, 0, 0, c) * in.V(0, 0, 0, c);
    delta += in.dO(0, 0, 0, c) * run.exact.O(0, 0, 0, c);
  }
  const double weight = std::exp(in.problem.softcap * t - run.exact.LSE(0, 0, 0));
  const double computed = weight * (dP - delta) * (1 - t * t);
  const double exact = 0.5 * (dP - delta);
  const double error = std::abs(computed - exact);  // of dK of the first key, whose q is 1
  CHECK(error <= run.bounds(numerics).dK.deterministic(0, 0, 0, 0));
}

// V = 1 leaves dS = 0 and nothing of dQ and dK but what delta errs.
Setting with_equal_values(const std::string& problem) {
  Setting in(problem, 1, 1, 5);
  double* V = in.V.doubles();
  for (std::int64_t e = 0; e < in.V.view().size(); ++e) V[e] = 1;
  return in;
}

Numerics of_pairs(double exp_ulps) {
  attest_numerics declared{};
  declared.delta_from_p = 1;
  declared.exp_ulps = exp_ulps;
  return resolve(declared, DType::f32);
}

// With V = 1 all dP of a row are one number C, and dS is 0 whatever P is. A kernel whose
// weights are all too large by a factor f makes delta f C of them, and dS = f P (C - f C).
void check_wrong_weights(double f, const Numerics& numerics, double lse_error) {
  const Setting in = with_equal_values("sq=3,sk=40,d=4,dv=2");
  const Gradients run{in};
  Tensor LSE = run.exact.LSE;
  for (std::int64_t i = 0; i < 3; ++i) LSE.set(LSE(0, 0, i) + lse_error, 0, 0, i);
  const auto bounds_of = [&](DeltaSource source) {
    Numerics contract = numerics;
    contract.delta = source;
    return backward_bounds(in.problem, {}, contract, in.Q.view(), in.K.view(), in.V.view(),
                           {in.dO.view(), nullptr}, {run.exact.O.view(), LSE.view()}, run.exact,
                           run.gradients);
  };
  const BackwardBounds pairs = bounds_of(DeltaSource::pairs),
                       outputs = bounds_of(DeltaSource::outputs);
  bool beyond_outputs = false;
  for (std::int64_t i = 0; i < 3; ++i) {
    const double C = in.dO(0, i, 0, 0) + in.dO(0, i, 0, 1);
    for (std::int64_t l = 0; l < 4; ++l) {
      double Pk = 0;
      for (std::int64_t j = 0; j < 40; ++j) {
        double s = 0;
        for (std::int64_t c = 0; c < 4; ++c) s += in.Q(0, i, 0, c) * in.K(0, j, 0, c);
        Pk += std::exp(in.problem.scale() * s - run.exact.LSE(0, 0, i)) * in.K(0, j, 0, l);
      }
      const double error = std::abs(in.problem.scale() * f * C * (1 - f) * Pk);
      CHECK(error <= pairs.dQ.deterministic(0, i, 0, l));
      CHECK(error <= pairs.dQ.probabilistic(0, i, 0, l));
      beyond_outputs = beyond_outputs || error > outputs.dQ.deterministic(0, i, 0, l);
    }
  }
  CHECK(beyond_outputs);
}

TEST_CASE("a delta made of P errs as the weights do", "[reference]") {
  attest_numerics declared{};
  declared.exp_ulps = 1000;
  const Numerics coarse = resolve(declared, DType::f32);
  check_wrong_weights(1 + exponential_error(coarse) / 1.02, coarse, 0);
  check_wrong_weights(1 - exponential_error(coarse) / 1.02, coarse, 0);
  const Numerics plain = resolve(attest_numerics{}, DType::f32);
  constexpr double kLseError = 0x1p-10;
  check_wrong_weights(std::exp(-kLseError), plain, kLseError);
  check_wrong_weights(std::exp(kLseError), plain, -kLseError);
}

TEST_CASE("a delta made of P errs as its sum does", "[reference]") {
  constexpr std::int64_t kKeys = 400;
  const Gradients run{with_equal_values("sq=1,sk=400,d=1,dv=1,scale=1")};
  const Numerics numerics = of_pairs(0);
  const BackwardBounds bounds = run.bounds(numerics);
  double Pk = 0;
  for (std::int64_t j = 0; j < kKeys; ++j) {
    const double s = run.in.Q(0, 0, 0, 0) * run.in.K(0, j, 0, 0);
    Pk += std::exp(s - run.exact.LSE(0, 0, 0)) * run.in.K(0, j, 0, 0);
  }
  // Every addition rounds the same way: all terms have one sign.
  const double sum = std::abs(run.in.dO(0, 0, 0, 0));
  const double error = gamma(kKeys - 1, numerics.accumulator_roundoff) * sum * std::abs(Pk);
  CHECK(error <= bounds.dQ.deterministic(0, 0, 0, 0));
}

TEST_CASE("what biases every delta made of P biases dK", "[reference]") {
  constexpr std::int64_t kRows = 400;
  Setting in = with_equal_values("sq=400,sk=2,d=1,dv=1,scale=1");
  for (std::int64_t i = 0; i < kRows; ++i) {
    in.Q.set(std::abs(in.Q(0, i, 0, 0)), 0, i, 0, 0);
    in.dO.set(std::abs(in.dO(0, i, 0, 0)), 0, i, 0, 0);
  }
  const Gradients run{in};
  const Numerics numerics = of_pairs(1000);
  const BackwardBounds bounds = run.bounds(numerics);
  const double high = exponential_error(numerics) / 1.02;  // of every exponential
  for (std::int64_t j = 0; j < 2; ++j) {
    double error = 0;
    for (std::int64_t i = 0; i < kRows; ++i) {
      const double q = in.Q(0, i, 0, 0);
      const double P = std::exp(q * in.K(0, j, 0, 0) - run.exact.LSE(0, 0, i));
      error += (1 + high) * P * high * in.dO(0, i, 0, 0) * q;
    }
    CHECK(error <= bounds.dK.probabilistic(0, j, 0, 0));
    CHECK(error <= bounds.dK.deterministic(0, j, 0, 0));
  }
}

}  // namespace
}  // namespace attest::reference
