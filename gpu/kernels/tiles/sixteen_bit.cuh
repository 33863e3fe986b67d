#pragma once

#include "gpu/simt/simt.hpp"

/// 16-bit floats as memory holds them. Products and sums are those of float32.
/// [gpu/kernels/tiles/sixteen_bit_test]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// The upper half of a binary32.
struct Bf16 {
  std::uint16_t bits = 0;
};

/// IEEE binary16.
struct F16 {
  std::uint16_t bits = 0;
};

__device__ inline float float_of_bits(std::uint32_t bits) {
  return __int_as_float(static_cast<int>(bits));
}
__device__ inline std::uint32_t bits_of_float(float value) {
  return static_cast<std::uint32_t>(__float_as_int(value));
}

/// Exact.
__device__ inline float to_float(float value) { return value; }
__device__ inline float to_float(Bf16 value) {
  return float_of_bits(static_cast<std::uint32_t>(value.bits) << 16U);
}
__device__ inline float to_float(F16 value) {
  const std::uint32_t sign = (value.bits & 0x8000U) << 16U, magnitude = value.bits & 0x7FFFU;
  if (magnitude >= 0x7C00U) return float_of_bits(sign | 0x7F800000U | magnitude << 13U);
  // The exponent's bias is 112 larger in binary32: 2^112 times the bits taken as such.
  return float_of_bits(sign | bits_of_float(float_of_bits(magnitude << 13U) * 0x1p112F));
}

/// To nearest even; overflow goes to infinity, a NaN stays one.
template <class T>
__device__ T rounded(float value);

template <>
__device__ inline float rounded<float>(float value) {
  return value;
}

template <>
__device__ inline Bf16 rounded<Bf16>(float value) {
  const std::uint32_t bits = bits_of_float(value);
  if (value != value) return {static_cast<std::uint16_t>(bits >> 16U | 0x40U)};
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16U & 1U)) >> 16U)};
}

template <>
__device__ inline F16 rounded<F16>(float value) {
  const std::uint32_t sign = bits_of_float(value) >> 16U & 0x8000U;
  const float magnitude = fabsf(value);
  std::uint32_t bits = 0;
  if (value != value) {
    bits = 0x7E00U;
  } else if (magnitude >= 65520.0F) {  // halfway from the largest value to the next
    bits = 0x7C00U;
  } else if (magnitude < 0x1p-14F) {  // subnormal: a word of 0.5 + magnitude is 2^-24
    bits = bits_of_float(magnitude + 0.5F) - bits_of_float(0.5F);
  } else {
    const std::uint32_t shifted = bits_of_float(magnitude) - (112U << 23U);
    bits = (shifted + 0xFFFU + (shifted >> 13U & 1U)) >> 13U;
  }
  return {static_cast<std::uint16_t>(sign | bits)};
}

/// As in a kernel's name: "float", "Bf16" or "F16".
template <class T>
constexpr const char* name_of_type() {
  return std::is_same_v<T, float> ? "float" : std::is_same_v<T, Bf16> ? "Bf16" : "F16";
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
