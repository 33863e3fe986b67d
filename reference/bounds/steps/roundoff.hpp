#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/numerics.hpp"

/// Rounding-error arithmetic shared by the bounds, and every constant they rest on. Sections refer
/// to docs/theory/error-bounds/README.md.
namespace attest::reference {

/// Multiplier of the probabilistic bounds: 2 exp(-lambda^2/2) = 3.9e-22 per element, that is 1e-12
/// over 2.6e9 elements (section "Two strengths").
inline constexpr double kLambda = 10;

/// An aggregate rms(error / sigma) above this refuses, from kAggregateElements elements on
/// (section "Aggregates").
inline constexpr double kAggregateLimit = 1;
inline constexpr std::int64_t kAggregateElements = 256;

/// Throws InvalidProblem where uncovered_by_attention_bounds says why.
void require_covered(const Numerics& numerics);

/// The contract as attention's bounds read it: an accumulator in bf16 or f16 keeps the sums of
/// products (sum_roundoff) and P, all other arithmetic is float32 (section "Low accumulators").
/// Any other contract is returned as it is.
Numerics with_sums_apart(Numerics numerics);

/// The same without that: what sums of other things than products err.
Numerics of_other_sums(Numerics numerics);

/// Higham's gamma: n u / (1 - n u); +inf when n u >= 1.
double gamma(double n, double u);

/// Largest error of a sum of `terms` products over the sum of their magnitudes, in the declared
/// accumulation mode: gamma(n, u) to nearest, gamma(n, 2u) for a truncating chain, per block of b
/// products (b+1) 2^-f + 2u for fused blocks (section "Accumulation"). `others` are roundings of
/// the result that are no additions to it, like that of a scale. In a low accumulator (1 + n u')
/// (1 + u')^(others+1) - 1, finite for every n.
double accumulation_error(const Numerics& numerics, double terms, double others = 0);

/// The same of a sum that is rescaled so often on its way.
double rescaled_sum_error(const Numerics& numerics, double terms, double rescales);

/// Returns what a sum of so many products, in chains of `depth` additions, loses where products and
/// sums are subnormal: in a low accumulator, and where they are flushed.
double accumulation_loss(const Numerics& numerics, double terms, double depth, double others);

/// Largest relative error that rounding both operands of a product again brings to it.
double operand_error(const Numerics& numerics);

/// The part of it that is a random walk: sqrt(n) u to nearest, 0 when the rounding is biased or the
/// accumulator low.
double accumulation_deviation(const Numerics& numerics, double terms);

/// The part that is not: 0 to nearest in f32 or f64, accumulation_error otherwise.
double accumulation_bias(const Numerics& numerics, double terms, double others = 0);

/// Additions in the longest chain over n terms: the declared depth, or n.
double summation_depth(const Numerics& numerics, double n);

/// Merges through LSE that n keys take, one after another: the declared number, or fewer where each
/// takes in a declared number of keys (section "Splits merged through LSE").
double split_merges(const Numerics& numerics, double n);

/// Largest error of the exponential, relative and of its logarithm: linear in the declared ulps
/// (one ulp <= 2u, and one per cent or more for second order), +inf where it may vanish.
double exponential_error(const Numerics& numerics);

/// An upper bound of e^x - 1 for x >= 0 that is cheap and relatively x/2 too large up to 2^-10,
/// exact beyond; x is limited to `largest`.
inline double growth(double x, double largest) {
  return x < 0x1p-10 ? x + x * x : std::expm1(std::min(x, largest));
}

/// Smallest normal number of the accumulator: what flushing to zero may lose.
double flush_unit(const Numerics& numerics);

/// How much of a coherence is beyond what a random walk of `depth` steps covers: all of it from
/// kDriftTerms terms on when above 3 sqrt(depth), else 0 (section "Drift").
inline constexpr double kDriftTerms = 256;
double drift_of(double coherence, double terms, double depth);

}  // namespace attest::reference
