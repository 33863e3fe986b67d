#include "core/dtype/dtype.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "core/error.hpp"

namespace attest {
namespace {
constexpr std::uint32_t kFloatExponent = 0x7f800000u;

constexpr bool in_order() {
  for (std::size_t k = 0; k < kDTypes.size(); ++k) {
    if (static_cast<std::size_t>(kDTypes[k].dtype) != k) return false;
    if (static_cast<std::size_t>(kDTypes[k].code) != k) return false;
  }
  return true;
}
static_assert(in_order(), "facts() finds a row by its place");

bool is_nan(std::uint32_t bits) { return (bits & 0x7fffffffu) > kFloatExponent; }

// Drops `shift` low bits of `value`, rounding to nearest, ties to even.
std::uint32_t round_shift(std::uint32_t value, unsigned shift) {
  const std::uint32_t kept = value >> shift;
  const std::uint32_t rest = value & ((1u << shift) - 1u);
  const std::uint32_t half = 1u << (shift - 1u);
  return kept + static_cast<std::uint32_t>(rest > half || (rest == half && (kept & 1u) != 0u));
}
}  // namespace

std::uint16_t bf16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if (is_nan(bits)) return static_cast<std::uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<std::uint16_t>(round_shift(bits, 16));
}

float float_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

std::uint16_t f16_from_float(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (is_nan(bits)) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  constexpr std::uint32_t kOverflow = 0x477ff000u;   // 65520, halfway between 65504 and 2^16
  constexpr std::uint32_t kMinNormal = 0x38800000u;  // 2^-14
  constexpr std::uint32_t kToZero = 0x33000000u;     // 2^-25, a tie that rounds to even zero
  if (magnitude >= kOverflow) return static_cast<std::uint16_t>(sign | 0x7c00u);
  if (magnitude >= kMinNormal) {
    return static_cast<std::uint16_t>(sign | round_shift(magnitude - 0x38000000u, 13));
  }
  if (magnitude <= kToZero) return static_cast<std::uint16_t>(sign);
  const std::uint32_t exponent = magnitude >> 23;
  const std::uint32_t significand = (magnitude & 0x007fffffu) | 0x00800000u;
  return static_cast<std::uint16_t>(sign | round_shift(significand, 126u - exponent));
}

float float_from_f16(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | kFloatExponent | (fraction << 13));
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24 is exact in float
    const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
    return sign != 0 ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (fraction << 13));
}

DType dtype_of(std::int64_t code) {
  std::string known;
  for (const DTypeFacts& row : kDTypes) {
    if (row.code == code) return row.dtype;
    known += (known.empty() ? "" : row.dtype == kDTypes.back().dtype ? " or " : ", ");
    known += row.abi_name;
  }
  throw InvalidProblem("dtype code " + std::to_string(code) + " is unknown; use " + known);
}

double ulp(DType dtype, double x) {
  const double smallest = dtype == DType::f64 ? 0x1p-1074 : 2 * underflow_unit(dtype);
  if (x == 0) return smallest;
  return std::max(smallest, std::ldexp(2 * unit_roundoff(dtype), std::ilogb(x)));
}

}  // namespace attest
