#include "reference/roundoff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "reference/bounds.hpp"

namespace attest::reference {

std::string uncovered_by_attention_bounds(const Numerics& numerics) {
  if (numerics.accumulator_roundoff <= unit_roundoff(DType::f32)) return "";
  return "the contract accumulates in bf16 or f16, but the bounds cover sums kept in f32 or f64; "
         "declare accumulator f32, and dq_accumulator or gqa_partial where only those are lower";
}

void require_covered(const Numerics& numerics) {
  const std::string uncovered = uncovered_by_attention_bounds(numerics);
  if (!uncovered.empty()) throw InvalidProblem("attention: " + uncovered);
}

double gamma(double n, double u) {
  const double x = n * u;
  return x < 1 ? x / (1 - x) : std::numeric_limits<double>::infinity();
}

double accumulation_error(const Numerics& numerics, double terms, double others) {
  const double u = numerics.accumulator_roundoff;
  switch (numerics.accumulation) {
    case Accumulation::nearest:
      return gamma(terms + others, u);
    case Accumulation::truncating:
      return gamma(terms + others, 2 * u);
    case Accumulation::fused_blocks:
      break;
  }
  const auto block = static_cast<double>(numerics.fused_block);
  const double per_block = (block + 1) * std::exp2(-numerics.fused_fraction_bits) + 2 * u;
  // A block has room for products alone.
  const double sum = gamma(std::ceil(terms / block), per_block), rest = gamma(others, u);
  return sum + rest * (1 + sum);
}

double accumulation_deviation(const Numerics& numerics, double terms) {
  if (numerics.accumulation != Accumulation::nearest) return 0;
  return std::sqrt(terms) * numerics.accumulator_roundoff;
}

double accumulation_bias(const Numerics& numerics, double terms, double others) {
  return numerics.accumulation == Accumulation::nearest
             ? 0
             : accumulation_error(numerics, terms, others);
}

double summation_depth(const Numerics& numerics, double n) {
  if (numerics.summation_depth == 0) return n;
  return std::min(n, static_cast<double>(numerics.summation_depth));
}

double split_merges(const Numerics& numerics, double n) {
  const auto most = static_cast<double>(numerics.lse_splits);
  if (numerics.lse_split_keys == 0) return most;
  return std::min(most, std::ceil(n / static_cast<double>(numerics.lse_split_keys)));
}

double exponential_error(const Numerics& numerics) {
  const double relative = 2 * numerics.exp_ulps * numerics.accumulator_roundoff;
  if (relative >= 1) return std::numeric_limits<double>::infinity();
  return relative * std::max(1.01, 1 / (1 - relative));
}

double flush_unit(const Numerics& numerics) {
  return numerics.accumulator_roundoff > 0x1p-30 ? 0x1p-126 : 0x1p-1022;
}

double drift_of(double coherence, double terms, double depth) {
  return terms >= kDriftTerms && coherence > 3 * std::sqrt(depth) ? coherence : 0;
}

}  // namespace attest::reference
