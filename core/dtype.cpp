#include "core/dtype.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "core/error.hpp"

namespace attest {
namespace {
constexpr std::uint32_t kFloatExponent = 0x7f800000u;

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

std::string_view name(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return "f64";
    case DType::f32:
      return "f32";
    case DType::bf16:
      return "bf16";
    case DType::f16:
      return "f16";
  }
  return "?";
}

attest_dtype abi(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return ATTEST_F64;
    case DType::f32:
      return ATTEST_F32;
    case DType::bf16:
      return ATTEST_BF16;
    case DType::f16:
      break;
  }
  return ATTEST_F16;
}

DType dtype_of(attest_dtype code) {
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16}) {
    if (abi(dtype) == code) return dtype;
  }
  throw InvalidProblem("dtype code " + std::to_string(static_cast<int>(code)) +
                       " is unknown; use ATTEST_F64, ATTEST_F32, ATTEST_BF16 or ATTEST_F16");
}

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      break;
  }
  return 0x1p-11;
}

double underflow_unit(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0;
    case DType::f32:
      return 0x1p-150;
    case DType::bf16:
      return 0x1p-134;
    case DType::f16:
      break;
  }
  return 0x1p-25;
}

double ulp(DType dtype, double x) {
  const double smallest = dtype == DType::f64 ? 0x1p-1074 : 2 * underflow_unit(dtype);
  if (x == 0) return smallest;
  return std::max(smallest, std::ldexp(2 * unit_roundoff(dtype), std::ilogb(x)));
}

}  // namespace attest
