#pragma once

#include <cstdint>

#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {

/// Binary floating-point format: `precision` significant bits, normal numbers from 2^least_exponent
/// below 2^(most_exponent + 1).
struct Format {
  int precision, least_exponent, most_exponent;
};
inline constexpr Format kF16{11, -14, 15}, kBf16{8, -126, 127}, kTf32{11, -126, 127},
    kF32{24, -126, 127};

/// Ways to round; `away`: to the nearest, ties away from zero (.rna).
enum class Tie : std::uint8_t { even, away };

/// The number of the format to which a value is rounded; subnormal numbers are kept, an overflow
/// gives infinity or the largest number, as IEEE 754 has it. NaN stays.
/// [gpu/ptx/program/opcodes_test]
double rounded(double value, Format format, Rounding rounding, Tie tie = Tie::even);

/// The number of the nearest integers; NaN and infinities stay.
double rounded_to_integer(double value, Rounding rounding);

/// a + b rounded to odd in double: a later rounding to fewer bits gives what one rounding of the
/// exact sum gives.
double sum_to_odd(double a, double b);

}  // namespace attest::ptx
