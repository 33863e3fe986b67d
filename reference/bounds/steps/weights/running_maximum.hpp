#pragma once

#include <cstdint>
#include <vector>

namespace attest::reference {

/// How often the running maximum of computed scores can rise: `possible` is proved, `likely` is
/// exceeded with the probability of the probabilistic bounds (docs/theory/error-bounds/forward.md,
/// "Rises of the maximum").
struct Rises {
  double possible = 0, likely = 0;
};

/// Counts the rises of rows; keeps memory between them.
class RunningMaximum {
 public:
  /// The larger numbers of the two directions, the first key's rise from nothing included.
  /// Shapes:   scores and errors hold entries begin .. end - 1; |computed - scores[j]| <=
  /// errors[j]. Requires: errors >= 0, may be infinite; scores finite, or -inf for keys not
  /// visible. Ensures:  possible >= likely >= the number of records of the exact scores. Cost:
  /// O(n), and O(n log n) where many scores agree within their errors.
  /// [reference/bounds/steps/weights/running_maximum_test]
  Rises rises(const double* scores, const double* errors, std::int64_t begin, std::int64_t end);

 private:
  Rises scan(const double* scores, const double* errors, std::int64_t first, std::int64_t count,
             std::int64_t step);
  double expected_surplus();

  std::vector<double> candidates_;  // scores of the keys that may be records, as they come
  std::vector<std::uint32_t> order_, tree_;
};

/// The smallest count that a sum of independent indicators with this mean exceeds with probability
/// at most exp(-kLambda^2 / 2) (Chernoff's bound).
/// [reference/bounds/steps/weights/running_maximum_test]
double most_successes(double mean);

}  // namespace attest::reference
