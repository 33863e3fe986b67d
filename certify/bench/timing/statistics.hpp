#pragma once

#include <vector>

namespace attest::certify {

/// Median with quartiles: what a measurement says and how far it spreads.
struct Quartiles {
  double low = 0, median = 0, high = 0;
};

/// Quartiles of a sample by linear interpolation between order statistics.
/// Requires: a sample that is not empty. Else throws InvalidProblem.
/// [certify/bench/timing/statistics_test]
Quartiles quartiles(std::vector<double> sample);

/// Quartiles of numerator[i] / denominator[i]: both taken in the same round, so that what slows a
/// whole round cancels.
/// Requires: samples of equal size, not empty. Else throws InvalidProblem.
/// [certify/bench/timing/statistics_test]
Quartiles paired_ratios(const std::vector<double>& numerator,
                        const std::vector<double>& denominator);

}  // namespace attest::certify
