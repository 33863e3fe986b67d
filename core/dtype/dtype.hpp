#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/abi/attest_kernel.h"

/// Scalar types of tensors, with bit-exact conversions for the two 16-bit formats.
namespace attest {

enum class DType : std::uint8_t { f64, f32, bf16, f16 };

/// Rounds to the nearest bfloat16 (8 significant bits), ties to even; NaN stays NaN (quiet, sign
/// kept), overflow goes to infinity.  [core/dtype/dtype_test "bf16 conversion rounds to nearest
/// even"]
std::uint16_t bf16_from_float(float value);

/// The value of a bfloat16 bit pattern; exact.
float float_from_bf16(std::uint16_t bits);

/// Rounds to the nearest IEEE binary16 (11 significant bits), ties to even, subnormals kept; NaN
/// stays NaN, overflow goes to infinity.  [core/dtype/dtype_test "f16 conversion is exact"]
std::uint16_t f16_from_float(float value);

/// The value of a binary16 bit pattern; exact.
float float_from_f16(std::uint16_t bits);

/// Everything about a dtype that is a fact and not arithmetic: a new one is a row here, its
/// conversions above, and what the kernels that take it say.
struct DTypeFacts {
  DType dtype;
  attest_dtype code;             // the ABI's
  std::string_view name;         // in problem strings
  std::string_view abi_name;     // in messages for authors of libraries
  std::string_view safetensors;  // in files
  std::uint8_t dlpack_code;      // 2 = IEEE, 4 = bfloat16
  std::uint8_t bits;
  double unit_roundoff;   // half the distance from 1 to the next larger value
  double underflow_unit;  // half the smallest positive value; of f64 that is 0 in double
};

/// In the order of the enumerators, which is that of the ABI's codes.
inline constexpr std::array<DTypeFacts, 4> kDTypes{{
    {DType::f64, ATTEST_F64, "f64", "ATTEST_F64", "F64", 2, 64, 0x1p-53, 0},
    {DType::f32, ATTEST_F32, "f32", "ATTEST_F32", "F32", 2, 32, 0x1p-24, 0x1p-150},
    {DType::bf16, ATTEST_BF16, "bf16", "ATTEST_BF16", "BF16", 4, 16, 0x1p-8, 0x1p-134},
    {DType::f16, ATTEST_F16, "f16", "ATTEST_F16", "F16", 2, 16, 0x1p-11, 0x1p-25},
}};

/// Returns the row of a dtype.
constexpr const DTypeFacts& facts(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }

/// Returns all dtypes, in the order of the table.
constexpr std::array<DType, kDTypes.size()> all_dtypes() {
  std::array<DType, kDTypes.size()> all{};
  for (std::size_t k = 0; k < all.size(); ++k) all[k] = kDTypes[k].dtype;
  return all;
}

/// Returns the bytes one element occupies.
constexpr std::size_t size_bytes(DType dtype) { return facts(dtype).bits / 8; }

/// Returns the name used in problem strings: "f64", "f32", "bf16", "f16".
constexpr std::string_view name(DType dtype) { return facts(dtype).name; }

/// Returns the ABI's code of a dtype.
constexpr attest_dtype abi(DType dtype) { return facts(dtype).code; }

/// Returns the dtype of an ABI code. Throws InvalidProblem for an unknown one. It takes a number:
/// an enumeration cannot hold one that is no code.  [core/dtype/dtype_test "unknown codes are
/// refused"]
DType dtype_of(std::int64_t code);

/// Returns the unit roundoff: 2^-53, 2^-24, 2^-8, 2^-11.
constexpr double unit_roundoff(DType dtype) { return facts(dtype).unit_roundoff; }

/// Returns the largest error of rounding to a subnormal (2^-1075 of f64 is 0 in double).
constexpr double underflow_unit(DType dtype) { return facts(dtype).underflow_unit; }

/// Unit in the last place: the distance between the values of `dtype` around a finite x.
/// [core/dtype/dtype_test "ulp"]
double ulp(DType dtype, double x);

}  // namespace attest
