#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/ptx/text/position.hpp"

namespace attest::ptx {

/// Smallest pieces of a PTX text. A word is an identifier, a directive or an opcode with all its
/// modifiers ("%tid.x", ".reg", "ld.global.v4.b32").
struct Token {
  enum class Kind : std::uint8_t { word, number, string, punctuation, end };
  Kind kind = Kind::end;
  std::string_view text;  // of the PTX text; a string without its quotes
  Position at;

  bool is(std::string_view what) const {
    return text == what && (kind == Kind::word || kind == Kind::punctuation);
  }
};

/// Splits a text; the last token is the end. Comments are left out.
/// Throws InvalidProblem for characters that PTX does not have, and for a string or comment without
/// its end. [gpu/ptx/text/parser_test]
std::vector<Token> tokens(std::string_view text);

}  // namespace attest::ptx
