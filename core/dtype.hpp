#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/abi/attest_kernel.h"

/// Scalar types of tensors, with bit-exact conversions for the two 16-bit formats.
namespace attest {

enum class DType : std::uint8_t { f64, f32, bf16, f16 };

/// Rounds to the nearest bfloat16 (8 significant bits), ties to even; NaN stays NaN (quiet, sign
/// kept), overflow goes to infinity.  [core/dtype_test "bf16 conversion rounds to nearest even"]
std::uint16_t bf16_from_float(float value);

/// The value of a bfloat16 bit pattern; exact.
float float_from_bf16(std::uint16_t bits);

/// Rounds to the nearest IEEE binary16 (11 significant bits), ties to even, subnormals kept; NaN
/// stays NaN, overflow goes to infinity.  [core/dtype_test "f16 conversion is exact"]
std::uint16_t f16_from_float(float value);

/// The value of a binary16 bit pattern; exact.
float float_from_f16(std::uint16_t bits);

/// Bytes one element occupies.
constexpr std::size_t size_bytes(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 8;
    case DType::f32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
  }
  return 0;
}

/// The name used in problem strings: "f64", "f32", "bf16", "f16".
std::string_view name(DType dtype);

/// The ABI's code of a dtype, and back; throws InvalidProblem for an unknown code.
attest_dtype abi(DType dtype);
DType dtype_of(attest_dtype code);

/// Unit roundoff: half the distance from 1 to the next larger value (2^-53, 2^-24, 2^-8, 2^-11).
double unit_roundoff(DType dtype);

/// Largest error of rounding to a subnormal: half the smallest positive value (2^-1075 of f64 is 0
/// in double).
double underflow_unit(DType dtype);

/// Unit in the last place: the distance between the values of `dtype` around a finite x.
/// [core/dtype_test "ulp"]
double ulp(DType dtype, double x);

}  // namespace attest
