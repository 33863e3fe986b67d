#pragma once

#include <string>
#include <utility>
#include <vector>

namespace attest::certify {

/// An exponent with its confidence interval.
struct Exponent {
  double value = 0, low = 0, high = 0;
  int points = 0;

  bool contains(double x) const { return low <= x && x <= high; }
  /// Tells whether this whole number is the nearest and the interval reaches neither of its
  /// neighbours.
  /// [certify/reproduce/fit_test "whole"]
  bool is(int whole) const;
  /// Tells whether something that is bounded by constants may grow so: 0 is the nearest multiple of
  /// a half and the interval reaches neither of its neighbours.  [certify/reproduce/fit_test
  /// "bounded"]
  bool bounded() const;
  /// "-0.998 [-1.003, -0.993]".
  std::string to_string() const;
};

/// The exponent b of y = a x^b by least squares of the logarithms, with the interval that holds the
/// true slope in 95 of 100 repetitions if residuals are normal (Student's t, n - 2 degrees).
///
/// Requires: at least three points, all coordinates positive, not all x equal. Else throws
/// InvalidProblem.  [certify/reproduce/fit_test]
Exponent fit_exponent(const std::vector<std::pair<double, double>>& points);

}  // namespace attest::certify
