#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/dtype/dtype.hpp"

namespace attest::simt {

/// Types of a product's factors: a register has four of 8 bits, two of 16, or one, the first in the
/// lowest bits.
enum class Factor : std::uint8_t { bf16, f16, tf32, e4m3, e5m2, s8, u8 };

constexpr std::uint32_t bits_of(Factor type) {
  if (type == Factor::tf32) return 32;
  return type == Factor::bf16 || type == Factor::f16 ? 16 : 8;
}

/// Values of the two formats of 8 bits (Open Compute Project, OFP8): e4m3 has no infinity and one
/// NaN of each sign, e5m2 is the upper half of a binary16.
inline float float_from_e4m3(std::uint8_t bits) {
  constexpr std::uint32_t kNaN = 0x7F, kMantissa = 3, kBias = 7;
  const std::uint32_t magnitude = bits & 0x7FU, exponent = magnitude >> kMantissa;
  if (magnitude == kNaN) return std::numeric_limits<float>::quiet_NaN();
  const std::uint32_t mantissa = magnitude % 8 + (exponent == 0 ? 0 : 8);
  const int scale = static_cast<int>(exponent == 0 ? 1 : exponent) - static_cast<int>(kBias) - 3;
  return std::copysign(std::ldexp(static_cast<float>(mantissa), scale),
                       bits >= 0x80 ? -1.0F : 1.0F);
}
inline float float_from_e5m2(std::uint8_t bits) {
  return float_from_f16(static_cast<std::uint16_t>(bits << 8));
}

/// The factor in a register's bits from `shift` on.
inline float value_of(std::uint32_t word, std::uint32_t shift, Factor type) {
  constexpr std::uint32_t kIgnored = (1U << 13) - 1;  // below the 10 bits of tf32's mantissa
  const std::uint32_t bits = word >> shift;
  switch (type) {
    case Factor::e4m3:
      return float_from_e4m3(static_cast<std::uint8_t>(bits));
    case Factor::e5m2:
      return float_from_e5m2(static_cast<std::uint8_t>(bits));
    case Factor::s8:
      return static_cast<float>(static_cast<std::int8_t>(bits));
    case Factor::u8:
      return static_cast<float>(static_cast<std::uint8_t>(bits));
    case Factor::bf16:
      return float_from_bf16(static_cast<std::uint16_t>(bits));
    case Factor::f16:
      return float_from_f16(static_cast<std::uint16_t>(bits));
    case Factor::tf32:
      break;
  }
  return std::bit_cast<float>(word & ~kIgnored);
}

/// The f16 that is nearest to a sum, rounded once.
inline float nearest_f16_of(double sum) {
  constexpr int kLeastExponent = -14, kFractionBits = 10;
  constexpr double kLargest = 65504.0;
  if (!std::isfinite(sum) || sum == 0.0) return static_cast<float>(sum);
  const int unit = std::max(std::ilogb(sum), kLeastExponent) - kFractionBits;
  const double rounded = std::ldexp(std::nearbyint(std::ldexp(sum, -unit)), unit);
  if (std::fabs(rounded) <= kLargest) {
    return std::copysign(static_cast<float>(rounded), static_cast<float>(sum));
  }
  return std::copysign(std::numeric_limits<float>::infinity(), static_cast<float>(sum));
}

}  // namespace attest::simt
