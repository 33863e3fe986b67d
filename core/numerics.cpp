#include "core/numerics.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

#include "core/dtype/dtype_range.hpp"
#include "core/error.hpp"

namespace attest {
namespace {

static_assert(std::extent_v<decltype(attest_numerics::exp_ulps_of)> == kDTypes.size(),
              "each dtype has its place in exp_ulps_of");

void require(const char* field, double value) {
  if (!(value >= 0) || !std::isfinite(value)) {
    throw InvalidProblem("numerics." + std::string(field) + " is " + std::to_string(value) +
                         "; it must be finite and >= 0");
  }
}

// The type that a field names which is not 0.
DType named_type(std::int32_t field, DType tensors) {
  if (field == ATTEST_INPUT_DTYPE) return tensors;
  try {
    return dtype_of(std::int64_t{field} - 1);
  } catch (const InvalidProblem& unknown) {
    throw InvalidProblem("numerics: " + std::string(unknown.what()) + "; 1 + that, or 0");
  }
}

// The type that a field says values of the accumulator are rounded to, unless it holds all of them.
std::optional<DType> rounding_type(std::int32_t field, DType tensors, DType accumulator) {
  if (field == 0) return std::nullopt;
  const DType type = named_type(field, tensors);
  const bool holds_all = unit_roundoff(type) <= unit_roundoff(accumulator) &&
                         underflow_unit(type) <= underflow_unit(accumulator);
  return holds_all ? std::nullopt : std::optional(type);
}

}  // namespace

Numerics resolve(const attest_numerics& declared, DType dtype) {
  require("input_roundoff", declared.input_roundoff);
  require("scaled_q_roundoff", declared.scaled_q_roundoff);
  require("operand_roundoff", declared.operand_roundoff);
  require("exp_ulps", declared.exp_ulps);
  for (const float ulps : declared.exp_ulps_of) require("exp_ulps_of", ulps);
  require("summation_depth", static_cast<double>(declared.summation_depth));
  require("lse_splits", declared.lse_splits);
  require("lse_split_keys", declared.lse_split_keys);
  Numerics numerics;
  switch (declared.accumulation) {
    case ATTEST_NEAREST:
      break;
    case ATTEST_TRUNCATING:
      numerics.accumulation = Accumulation::truncating;
      break;
    case ATTEST_FUSED_BLOCKS:
      numerics.accumulation = Accumulation::fused_blocks;
      numerics.fused_block = declared.fused_block;
      numerics.fused_fraction_bits = declared.fused_fraction_bits;
      if (declared.fused_block < 1 || declared.fused_fraction_bits < 1) {
        throw InvalidProblem(
            "numerics: ATTEST_FUSED_BLOCKS needs fused_block >= 1 and "
            "fused_fraction_bits >= 1");
      }
      break;
    default:
      throw InvalidProblem("numerics.accumulation is " +
                           std::to_string(static_cast<int>(declared.accumulation)) +
                           "; use a value of attest_accumulation");
  }
  const DType plain = dtype == DType::f64 ? DType::f64 : DType::f32;
  const DType sums = declared.accumulator == 0 ? plain : named_type(declared.accumulator, dtype);
  numerics.accumulator_roundoff = unit_roundoff(sums);
  if (unit_roundoff(sums) > unit_roundoff(DType::f32)) {
    numerics.accumulator_underflow = underflow_unit(sums);
  }
  const auto rounding = [&](std::int32_t field) { return rounding_type(field, dtype, sums); };
  numerics.summation_depth = declared.summation_depth;
  numerics.input_roundoff = declared.input_roundoff;
  numerics.operand_roundoff = declared.operand_roundoff;
  numerics.scaled_q_roundoff = declared.scaled_q_roundoff;
  if (const auto cast = rounding(declared.p_cast)) {
    numerics.p_roundoff = unit_roundoff(*cast);
    numerics.p_underflow = !has_narrow_range(*cast)  ? 0
                           : declared.flushes_p != 0 ? smallest_normal(*cast)
                                                     : underflow_unit(*cast);
  }
  if (declared.p_normalized != 0) numerics.normalize = CastOrder::before;
  if (declared.sum_after_cast != 0) numerics.row_sum = CastOrder::after;
  const float ulps_of_dtype = declared.exp_ulps_of[abi(dtype)];
  if (ulps_of_dtype > 0) {
    numerics.exp_ulps = ulps_of_dtype;
  } else if (declared.exp_ulps > 0) {
    numerics.exp_ulps = declared.exp_ulps;
  }
  numerics.exp_zero_is_one = declared.exp_zero_not_one == 0;
  numerics.lse_splits = declared.lse_splits;
  numerics.lse_split_keys = declared.lse_split_keys;
  const auto round_sums = [&](std::int32_t field, double& roundoff, double& underflow) {
    if (const auto type = rounding(field)) {
      roundoff = unit_roundoff(*type);
      underflow = underflow_unit(*type);
    }
  };
  round_sums(declared.gqa_partial, numerics.gqa_partial_roundoff, numerics.gqa_partial_underflow);
  round_sums(declared.gqa_accumulator, numerics.gqa_sum_roundoff, numerics.gqa_sum_underflow);
  round_sums(declared.dq_accumulator, numerics.dq_roundoff, numerics.dq_underflow);
  round_sums(declared.dkv_accumulator, numerics.dkv_roundoff, numerics.dkv_underflow);
  round_sums(declared.dp_cast, numerics.dp_roundoff, numerics.dp_underflow);
  round_sums(declared.score_cast, numerics.score_roundoff, numerics.score_underflow);
  if (declared.delta_from_p != 0) numerics.delta = DeltaSource::pairs;
  numerics.output_roundoff = unit_roundoff(dtype);
  numerics.output_underflow = underflow_unit(dtype);
  if (declared.flushes_subnormals != 0) {
    const double smallest_normal = plain == DType::f64 ? 0x1p-1022 : 0x1p-126;
    numerics.flushed_below = smallest_normal;
    numerics.p_underflow = std::max(numerics.p_underflow, smallest_normal);
    if (numerics.dp_roundoff > 0) {
      numerics.dp_underflow = std::max(numerics.dp_underflow, smallest_normal);
    }
    if (numerics.score_roundoff > 0) {
      numerics.score_underflow = std::max(numerics.score_underflow, smallest_normal);
    }
    numerics.output_underflow = std::max(numerics.output_underflow, smallest_normal);
  }
  return numerics;
}

Conventions conventions_of(const attest_description& description) {
  Conventions conventions;
  switch (description.empty_row) {
    case ATTEST_ZERO_NEG_INF:
      conventions.empty_row = EmptyRow::zero_neg_inf;
      break;
    case ATTEST_ZERO_POS_INF:
      conventions.empty_row = EmptyRow::zero_pos_inf;
      break;
    case ATTEST_NAN:
      conventions.empty_row = EmptyRow::nan;
      break;
    case ATTEST_ZERO_ZERO:
      conventions.empty_row = EmptyRow::zero_zero;
      break;
  }
  if (description.numerics.lse_base_two != 0) conventions.lse_base = LseBase::two;
  if (description.past_length == ATTEST_PAST_NOT_WRITTEN) {
    conventions.past_length = PastLength::not_written;
  }
  return conventions;
}

}  // namespace attest
