#pragma once

#include <cstdint>
#include <vector>

#include "core/numerics.hpp"

/// Rounding-error arithmetic shared by the bounds, and every constant they rest on. Sections refer
/// to docs/theory/error-bounds.md.
namespace attest::reference {

/// Multiplier of the probabilistic bounds: 2 exp(-lambda^2/2) = 3.9e-22 per element, that is 1e-12
/// over 2.6e9 elements (section "Two strengths").
inline constexpr double kLambda = 10;

/// An aggregate rms(error / sigma) above this refuses, from kAggregateElements elements on
/// (section "Aggregates").
inline constexpr double kAggregateLimit = 1;
inline constexpr std::int64_t kAggregateElements = 256;

/// Higham's gamma: n u / (1 - n u); +inf when n u >= 1.
double gamma(double n, double u);

/// Largest error of a sum of `terms` products over the sum of their magnitudes, in the declared
/// accumulation mode: gamma(n, u) to nearest, gamma(n, 2u) for a truncating chain, per block of b
/// products (b+1) 2^-f + 2u for fused blocks (section "Accumulation").
double accumulation_error(const Numerics& numerics, double terms);

/// The part of it that is a random walk: sqrt(n) u to nearest, 0 when the rounding is biased.
double accumulation_deviation(const Numerics& numerics, double terms);

/// The part that is biased: 0 to nearest, accumulation_error otherwise.
double accumulation_bias(const Numerics& numerics, double terms);

/// Additions in the longest chain over n terms: the declared depth, or n.
double summation_depth(const Numerics& numerics, double n);

/// Largest relative error of the exponential, linear in the declared ulps (one ulp <= 2u, and one
/// per cent for second order).
double exponential_error(const Numerics& numerics);

/// Smallest normal number of the accumulator: what flushing to zero may lose.
double flush_unit(const Numerics& numerics);

/// How much of a coherence is beyond what a random walk of `depth` steps covers: all of it from
/// kDriftTerms terms on when above 3 sqrt(depth), else 0 (section "Drift").
inline constexpr double kDriftTerms = 256;
double drift_of(double coherence, double terms, double depth);

/// Sorted positions of the finite entries of x[0], x[stride], …; reused between groupings.
class SortedGroups {
 public:
  /// Sorts; entries equal to -inf are left out.
  void sort(const double* x, std::int64_t count, std::int64_t stride);

  /// For every entry e, total[e] = sum of weight over its group: a greedy group begins at its
  /// smallest x and reaches `width` further. Left-out entries get 0.
  void group_sums(double width, const std::vector<double>& weight,
                  std::vector<double>& total) const;

  /// Coherent additions (section "Drift"): sum over groups of share * min(size, depth), where share
  /// is the group's part of the weight; about 1 when all x differ by more than `width`.
  double coherence(double width, const std::vector<double>& weight, double depth) const;

 private:
  std::vector<std::int64_t> order_;
  std::vector<double> sorted_;
};

}  // namespace attest::reference
