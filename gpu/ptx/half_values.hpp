#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "core/dtype.hpp"
#include "gpu/ptx/formats.hpp"

/// Values of 16 bits, each computed with in double and rounded once.
namespace attest::ptx {

struct F16 {
  static constexpr Format kFormat = kF16;
  static constexpr std::uint16_t kNaN = 0x7FFF;
  static double decode(std::uint16_t bits) { return static_cast<double>(float_from_f16(bits)); }
  static std::uint16_t encode_exact(double value) {
    return f16_from_float(static_cast<float>(value));
  }
};
struct Bf16 {
  static constexpr Format kFormat = kBf16;
  static constexpr std::uint16_t kNaN = 0x7FFF;
  static double decode(std::uint16_t bits) { return static_cast<double>(float_from_bf16(bits)); }
  static std::uint16_t encode_exact(double value) {
    return bf16_from_float(static_cast<float>(value));
  }
};

/// Rounds a value of float32.
template <class Half>
std::uint16_t encode(float value, Rounding rounding) {
  if (value != value) return Half::kNaN;
  const auto exact = static_cast<double>(value);
  // encode_exact rounds to the nearest by itself, and faster.
  if (rounding == Rounding::nearest) return Half::encode_exact(exact);
  return Half::encode_exact(rounded(exact, Half::kFormat, rounding));
}

/// Rounds a value that has no more bits than double, or was rounded to odd there.
template <class Half>
std::uint16_t encode(double value, Rounding rounding) {
  if (value != value) return Half::kNaN;
  return Half::encode_exact(rounded(value, Half::kFormat, rounding));
}

}  // namespace attest::ptx
