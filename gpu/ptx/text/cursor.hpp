#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/ptx/text/literal.hpp"
#include "gpu/ptx/text/tokens.hpp"

namespace attest::ptx {

/// Where a parser stands among the tokens of a text. Each `take_…` goes past one or throws
/// InvalidProblem that says what was expected and what is there.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : tokens_(tokens(text)) {}

  const Token& peek(std::size_t ahead = 0) const;
  Position at() const { return peek().at; }
  bool at_end() const { return peek().kind == Token::Kind::end; }

  /// Goes past the next token if it is `what`.
  bool skip(std::string_view what);

  Token take_any();
  Token take(std::string_view what);
  Token take_word(const char* what);
  /// An identifier: a word without dots, or with those of a special register.
  std::string take_name(const char* what);
  std::uint64_t take_integer(const char* what, std::uint64_t most = ~std::uint64_t{0});
  /// A number with the signs before it.
  Literal take_number();
  std::string take_string();

  [[noreturn]] void refuse_here(const std::string& expected) const;

 private:
  std::vector<Token> tokens_;
  std::size_t next_ = 0;
};

}  // namespace attest::ptx
