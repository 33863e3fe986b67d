#include "gpu/ptx/arithmetic/formats.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace attest::ptx {

double rounded_to_integer(double value, Rounding rounding) {
  switch (rounding) {
    case Rounding::zero:
      return std::trunc(value);
    case Rounding::down:
      return std::floor(value);
    case Rounding::up:
      return std::ceil(value);
    case Rounding::nearest:
      break;
  }
  const double below = std::floor(value), rest = value - below;
  if (rest != 0.5) return rest < 0.5 ? below : std::ceil(value);
  return std::fmod(below, 2.0) == 0.0 ? below : std::ceil(value);
}

double rounded(double value, Format format, Rounding rounding, Tie tie) {
  if (value == 0.0 || !std::isfinite(value)) return value;
  const int exponent = std::max(std::ilogb(value), format.least_exponent);
  const int quantum = exponent - (format.precision - 1);
  const double units = std::ldexp(value, -quantum);
  const double whole = tie == Tie::away ? std::round(units) : rounded_to_integer(units, rounding);
  const double result = std::copysign(std::ldexp(whole, quantum), value);
  const double ones = std::ldexp(1.0, format.precision) - 1.0;
  const double largest = std::ldexp(ones, format.most_exponent - (format.precision - 1));
  if (std::fabs(result) <= largest) return result;
  const bool is_positive = value > 0.0;
  const bool stays = rounding == Rounding::zero || (rounding == Rounding::down && is_positive) ||
                     (rounding == Rounding::up && !is_positive);
  return std::copysign(stays ? largest : std::numeric_limits<double>::infinity(), value);
}

double sum_to_odd(double a, double b) {
  const double sum = a + b;
  if (!std::isfinite(sum)) return sum;
  const double from_b = sum - a;
  const double error = (a - (sum - from_b)) + (b - from_b);  // exact (Knuth)
  const auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0.0 || (bits & 1U) != 0) return sum;
  const bool grows = (error > 0.0) == (sum > 0.0);
  return std::bit_cast<double>(grows ? bits + 1 : bits - 1);
}

}  // namespace attest::ptx
