#include "certify/reproduce/fit.hpp"

#include <fmt/format.h>

#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "core/error.hpp"

namespace attest::certify {
namespace {

// In double: of long doubles Boost computes a table before main, of numbers that valgrind's, which
// are no longer than a double, do not hold.
using InDouble = boost::math::policies::policy<boost::math::policies::promote_double<false>>;

}  // namespace

bool Exponent::is(int whole) const {
  return std::lround(value) == whole && !contains(whole - 1) && !contains(whole + 1);
}

bool Exponent::bounded() const {
  constexpr double kHalf = 0.5;
  return std::lround(value / kHalf) == 0 && !contains(kHalf) && !contains(-kHalf);
}

std::string Exponent::to_string() const {
  return fmt::format("{:.3f} [{:.3f}, {:.3f}]", value, low, high);
}

Exponent fit_exponent(const std::vector<std::pair<double, double>>& points) {
  constexpr std::size_t kLeast = 3;
  if (points.size() < kLeast) {
    throw InvalidProblem("fit: " + std::to_string(points.size()) +
                         " points; an exponent with its interval needs 3");
  }
  const auto n = static_cast<double>(points.size());
  double mean_x = 0, mean_y = 0;
  for (const auto& [x, y] : points) {
    if (!(x > 0 && y > 0)) throw InvalidProblem("fit: coordinates must be positive");
    mean_x += std::log(x) / n;
    mean_y += std::log(y) / n;
  }
  double xx = 0, xy = 0;
  for (const auto& [x, y] : points) {
    const double dx = std::log(x) - mean_x;
    xx += dx * dx;
    xy += dx * (std::log(y) - mean_y);
  }
  if (!(xx > 0)) throw InvalidProblem("fit: all points have the same x");
  Exponent exponent;
  exponent.value = xy / xx;
  exponent.points = static_cast<int>(points.size());
  double residuals = 0;
  for (const auto& [x, y] : points) {
    const double off = std::log(y) - mean_y - exponent.value * (std::log(x) - mean_x);
    residuals += off * off;
  }
  constexpr double kUpperTail = 0.975;  // two-sided 95 %
  const boost::math::students_t_distribution<double, InDouble> student(n - 2);
  const double half =
      boost::math::quantile(student, kUpperTail) * std::sqrt(residuals / (n - 2) / xx);
  exponent.low = exponent.value - half;
  exponent.high = exponent.value + half;
  return exponent;
}

}  // namespace attest::certify
