#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/dtype/dtype.hpp"
#include "gpu/ptx/arithmetic/formats.hpp"

/// Values of 16 bits, each computed with in double and rounded once.
namespace attest::ptx {

/// The nearest of 16 bits without a branch, so that loops over lanes become vectors; NaN is lost.
inline std::uint16_t nearest_bf16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16);
}
inline std::uint16_t nearest_f16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU, sign = bits >> 16 & 0x8000U;
  const std::uint32_t normal = (magnitude - (112U << 23) + 0xFFFU + (magnitude >> 13 & 1U)) >> 13;
  // Beside 1/2 the last bit of float32 is that of the smallest subnormal number.
  const float beside_half = std::bit_cast<float>(magnitude) + 0.5F;
  const std::uint32_t subnormal = std::bit_cast<std::uint32_t>(beside_half) - 0x3F000000U;
  const std::uint32_t finite = magnitude < (113U << 23) ? subnormal : normal;
  return static_cast<std::uint16_t>(sign | (magnitude < 0x477FF000U ? finite : 0x7C00U));
}

struct F16 {
  static constexpr Format kFormat = kF16;
  static constexpr std::uint16_t kNaN = 0x7FFF;
  static std::uint16_t nearest(float value) { return value != value ? kNaN : nearest_f16(value); }
  static double decode(std::uint16_t bits) { return static_cast<double>(float_from_f16(bits)); }
  static std::uint16_t encode_exact(double value) {
    return f16_from_float(static_cast<float>(value));
  }
};
struct Bf16 {
  static constexpr Format kFormat = kBf16;
  static constexpr std::uint16_t kNaN = 0x7FFF;
  static std::uint16_t nearest(float value) { return value != value ? kNaN : nearest_bf16(value); }
  static double decode(std::uint16_t bits) { return static_cast<double>(float_from_bf16(bits)); }
  static std::uint16_t encode_exact(double value) {
    return bf16_from_float(static_cast<float>(value));
  }
};

/// Rounds a value that has no more bits than double, or was rounded to odd there.
template <class Half>
std::uint16_t encode(double value, Rounding rounding) {
  if (value != value) return Half::kNaN;
  return Half::encode_exact(rounded(value, Half::kFormat, rounding));
}

/// Rounds a value of float32.
template <class Half>
std::uint16_t encode(float value, Rounding rounding) {
  if (rounding == Rounding::nearest) return Half::nearest(value);
  return encode<Half>(static_cast<double>(value), rounding);
}

}  // namespace attest::ptx
