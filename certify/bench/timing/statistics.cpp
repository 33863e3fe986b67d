#include "certify/bench/timing/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>

#include "core/error.hpp"

namespace attest::certify {
namespace {

double at_fraction(const std::vector<double>& sorted, double fraction) {
  const double position = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  const double weight = position - static_cast<double>(below);
  return sorted[below] * (1 - weight) + sorted[above] * weight;
}

}  // namespace

Quartiles quartiles(std::vector<double> sample) {
  if (sample.empty()) throw InvalidProblem("sample: no measurement; take at least one round");
  std::sort(sample.begin(), sample.end());
  return {at_fraction(sample, 0.25), at_fraction(sample, 0.5), at_fraction(sample, 0.75)};
}

Quartiles paired_ratios(const std::vector<double>& numerator,
                        const std::vector<double>& denominator) {
  if (numerator.size() != denominator.size()) {
    throw InvalidProblem("paired ratios: " + std::to_string(numerator.size()) + " numerators but " +
                         std::to_string(denominator.size()) +
                         " denominators; measure both in every round");
  }
  std::vector<double> ratios(numerator.size());
  for (std::size_t i = 0; i < ratios.size(); ++i) ratios[i] = numerator[i] / denominator[i];
  return quartiles(std::move(ratios));
}

}  // namespace attest::certify
