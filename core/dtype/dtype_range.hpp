#pragma once

#include <cstdint>
#include <limits>

#include "core/dtype/dtype.hpp"

/// Where the values of a dtype end, from its row in core/dtype/dtype.hpp.
namespace attest {

/// Returns the smallest normal number of a row.
constexpr double smallest_normal(const DTypeFacts& row) {
  return row.dtype == DType::f64 ? std::numeric_limits<double>::min()
                                 : row.underflow_unit / row.unit_roundoff;
}

/// Returns the smallest normal number: 2^-1022, 2^-126, 2^-126, 2^-14.
constexpr double smallest_normal(DType dtype) { return smallest_normal(facts(dtype)); }

/// Tells whether products and sums of plain values leave the range, as those of f16 do.
constexpr bool has_narrow_range(DType dtype) {
  return smallest_normal(dtype) > smallest_normal(DType::f32);
}

/// Tells whether sums of a unit roundoff are those of a dtype of narrow range.
constexpr bool has_narrow_range(double unit_roundoff) {
  for (const DTypeFacts& row : kDTypes) {
    if (has_narrow_range(row.dtype) && row.unit_roundoff == unit_roundoff) return true;
  }
  return false;
}

/// Returns the bits of attest_description.dtypes of all dtypes that are computed with in float32.
constexpr std::uint32_t dtypes_in_float32() {
  std::uint32_t bits = 0;
  for (const DTypeFacts& row : kDTypes) bits |= row.dtype == DType::f64 ? 0 : 1u << row.code;
  return bits;
}

}  // namespace attest
