#include "gpu/ptx/text/cursor.hpp"

#include <algorithm>

namespace attest::ptx {

const Token& Cursor::peek(std::size_t ahead) const {
  return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
}

Token Cursor::take_any() {
  const Token token = peek();
  if (!at_end()) ++next_;
  return token;
}

bool Cursor::skip(std::string_view what) {
  if (!peek().is(what)) return false;
  take_any();
  return true;
}

void Cursor::refuse_here(const std::string& expected) const {
  constexpr std::size_t kMostShown = 60;
  std::string got = "the end of the text";
  if (!at_end()) got = "'" + std::string(peek().text.substr(0, kMostShown)) + "'";
  refuse(at(), "expected " + expected + ", got " + got);
}

Token Cursor::take(std::string_view what) {
  if (!peek().is(what)) refuse_here("'" + std::string(what) + "'");
  return take_any();
}

Token Cursor::take_word(const char* what) {
  if (peek().kind != Token::Kind::word) refuse_here(what);
  return take_any();
}

std::string Cursor::take_name(const char* what) {
  const std::string_view text = peek().text;
  if (text.starts_with('.') || (!text.starts_with('%') && text.find('.') != text.npos) ||
      text.find(':') != text.npos) {
    refuse_here(what);
  }
  return std::string(take_word(what).text);
}

std::uint64_t Cursor::take_integer(const char* what, std::uint64_t most) {
  if (peek().kind != Token::Kind::number) refuse_here(what);
  const Literal value = literal(peek());
  if (value.kind != Literal::Kind::integer || value.bits > most) {
    refuse_here(std::string(what) + " of at most " + std::to_string(most));
  }
  take_any();
  return value.bits;
}

Literal Cursor::take_number() {
  const bool minus = skip("-");
  if (!minus) skip("+");
  if (peek().kind != Token::Kind::number) refuse_here("a number");
  const Literal value = literal(take_any());
  return minus ? negated(value) : value;
}

std::string Cursor::take_string() {
  if (peek().kind != Token::Kind::string) refuse_here("a text in quotes");
  return std::string(take_any().text);
}

}  // namespace attest::ptx
