#pragma once

#include <cstdint>

#include "gpu/ptx/text/tokens.hpp"

namespace attest::ptx {

/// Constant of a PTX text: the bits of an integer (two's complement) or of a floating-point number.
struct Literal {
  enum class Kind : std::uint8_t { integer, f32, f64 };
  Kind kind = Kind::integer;
  std::uint64_t bits = 0;
};

/// Reads a number: decimal, 0x…, 0b…, octal, 0f… and 0d… (bits of f32 and f64), decimal fractions
/// (f64). Throws InvalidProblem for others. [gpu/ptx/text/parser_test "numbers in every spelling"]
Literal literal(const Token& token);

/// The same number with a minus before it.
Literal negated(Literal value);

}  // namespace attest::ptx
