#include "reference/bounds/steps/roundoff.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/error.hpp"
#include "reference/bounds/bounds.hpp"

namespace attest::reference {

namespace {

bool has_low_accumulator(const Numerics& numerics) {
  return numerics.accumulator_roundoff > unit_roundoff(DType::f32);
}

// Additions to nearest cost n u without gamma in any order, where no depth is declared.
double low_sum_error(const Numerics& numerics, double terms, double others) {
  const double u = numerics.sum_roundoff, product = 1;
  const double steps = (others + product) * std::log1p(u);
  if (numerics.summation_depth > 0) return std::expm1(terms * std::log1p(u) + steps);
  return std::expm1(std::log1p(terms * u) + steps);
}

}  // namespace

std::string uncovered_by_attention_bounds(const Numerics& numerics) {
  if (!has_low_accumulator(numerics)) return "";
  if (numerics.accumulation != Accumulation::nearest) {
    return "the contract accumulates in bf16 or f16 and truncates, but the bounds cover additions "
           "in these types that are rounded to nearest; declare accumulation ATTEST_NEAREST where "
           "each is, or accumulator f32 where sums leave the matrix unit in it";
  }
  if (numerics.delta == DeltaSource::pairs) {
    return "the contract accumulates in bf16 or f16 and makes delta of P, but the bounds cover the "
           "delta of a low accumulator as the row sum of dO * O alone; declare accumulator f32, "
           "and dq_accumulator and dkv_accumulator where only those are lower";
  }
  return "";
}

Numerics with_sums_apart(Numerics numerics) {
  if (!has_low_accumulator(numerics)) return numerics;
  numerics.sum_roundoff = numerics.accumulator_roundoff;
  numerics.sum_underflow = numerics.accumulator_underflow;
  numerics.accumulator_roundoff = unit_roundoff(DType::f32);
  // P stays in the accumulator's type, or goes through one that is lower.
  numerics.p_roundoff = std::max(numerics.p_roundoff, numerics.sum_roundoff);
  numerics.p_underflow = std::max(numerics.p_underflow, numerics.sum_underflow);
  return numerics;
}

Numerics of_other_sums(Numerics numerics) {
  numerics.sum_roundoff = numerics.sum_underflow = 0;
  return numerics;
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
  if (numerics.sum_roundoff > 0) return low_sum_error(numerics, terms, others);
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

double rescaled_sum_error(const Numerics& numerics, double terms, double rescales) {
  return numerics.sum_roundoff > 0 ? low_sum_error(numerics, terms, rescales)
                                   : accumulation_error(numerics, terms + rescales);
}

double accumulation_loss(const Numerics& numerics, double terms, double depth, double others) {
  const double each = std::max(numerics.sum_underflow, numerics.flushed_below);
  if (each == 0) return 0;
  // A product and an addition of each term, and what is multiplied afterwards.
  return (2 * terms + others) * each * (1 + accumulation_error(numerics, depth, others));
}

double operand_error(const Numerics& numerics) {
  return numerics.operand_roundoff * (2 + numerics.operand_roundoff);
}

double accumulation_deviation(const Numerics& numerics, double terms) {
  if (numerics.accumulation != Accumulation::nearest || numerics.sum_roundoff > 0) return 0;
  return std::sqrt(terms) * numerics.accumulator_roundoff;
}

double accumulation_bias(const Numerics& numerics, double terms, double others) {
  const bool random = numerics.accumulation == Accumulation::nearest && numerics.sum_roundoff == 0;
  return random ? 0 : accumulation_error(numerics, terms, others);
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
