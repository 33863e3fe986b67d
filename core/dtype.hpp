#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

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
std::size_t size_bytes(DType dtype);

/// The name used in problem strings: "f64", "f32", "bf16", "f16".
std::string_view name(DType dtype);

}  // namespace attest
