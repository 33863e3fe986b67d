#include "certify/reproduce/fit.hpp"

#include <cmath>

#include "core/dtype/dtype.hpp"
#include "core/error.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Points = std::vector<std::pair<double, double>>;

Points power_law(double exponent, double noise, std::uint64_t seed) {
  Rng rng(seed);
  Points points;
  for (int k = 0; k < 12; ++k) {
    const double x = std::exp2(k);
    points.emplace_back(x, 7 * std::pow(x, exponent) * std::exp(noise * rng.normal()));
  }
  return points;
}

TEST_CASE("an exact power law has its exponent and a narrow interval", "[fit]") {
  // Logarithms of at most 18 err by at most 4 units; a slope over 12 powers of two averages them.
  const double rounding = 18 * 4 * unit_roundoff(DType::f64);
  for (const double exponent : {-1.0, -0.5, 0.0, 2.0}) {
    const Exponent fitted = fit_exponent(power_law(exponent, 0, 1));
    CHECK(std::abs(fitted.value - exponent) <= rounding);
    CHECK(fitted.high - fitted.low <= 2 * rounding);
    CHECK(fitted.points == 12);
  }
}

TEST_CASE("bounded is what has an exponent nearest 0 of the halves", "[fit]") {
  CHECK(Exponent{0.1, 0.0, 0.2, 5}.bounded());
  CHECK(Exponent{-0.2, -0.4, 0.0, 5}.bounded());
  CHECK_FALSE(Exponent{0.3, 0.2, 0.4, 5}.bounded());   // nearer a half
  CHECK_FALSE(Exponent{0.1, -0.3, 0.5, 5}.bounded());  // may be a half
  CHECK_FALSE(Exponent{-0.1, -0.5, 0.3, 5}.bounded());
}

TEST_CASE("the interval holds the true exponent in 95 of 100 noisy laws", "[fit]") {
  constexpr int kLaws = 2000;
  constexpr double kExponent = -0.5;
  int held = 0;
  for (int law = 0; law < kLaws; ++law) {
    held +=
        fit_exponent(power_law(kExponent, 0.3, static_cast<std::uint64_t>(law))).contains(kExponent)
            ? 1
            : 0;
  }
  // Six standard deviations of a count of 2000 with probability 0.95.
  const double spread = 6 * std::sqrt(kLaws * 0.95 * 0.05);
  CHECK(std::abs(held - 0.95 * kLaws) < spread);
}

TEST_CASE("a whole exponent is claimed only where no other is in reach", "[fit]") {
  CHECK(Exponent{1.1, 0.9, 1.3, 6}.is(1));
  CHECK_FALSE(Exponent{1.1, 0.9, 1.3, 6}.is(2));
  CHECK_FALSE(Exponent{1.1, 0.9, 2.1, 6}.is(1));  // 2 is in reach
  CHECK_FALSE(Exponent{1.6, 1.5, 1.7, 6}.is(1));
}

TEST_CASE("what is no law is refused", "[fit]") {
  CHECK_THROWS_WITH(fit_exponent({{1, 1}, {2, 2}}), Catch::Contains("2 points"));
  CHECK_THROWS_WITH(fit_exponent({{1, 1}, {2, 0}, {3, 1}}), Catch::Contains("positive"));
  CHECK_THROWS_WITH(fit_exponent({{2, 1}, {2, 3}, {2, 2}}), Catch::Contains("same x"));
}

}  // namespace
}  // namespace attest::certify
