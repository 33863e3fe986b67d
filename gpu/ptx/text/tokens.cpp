#include "gpu/ptx/text/tokens.hpp"

#include <cctype>
#include <string>

namespace attest::ptx {
namespace {

bool is_letter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}
bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_in_word(char c) { return is_letter(c) || is_digit(c) || c == '.'; }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  std::vector<Token> run() {
    std::vector<Token> all;
    for (skip_blanks(); next_ < text_.size(); skip_blanks()) all.push_back(token());
    all.push_back({Token::Kind::end, "", at_});
    return all;
  }

 private:
  char peek(std::size_t ahead = 0) const {
    return next_ + ahead < text_.size() ? text_[next_ + ahead] : '\0';
  }

  void advance(std::size_t count = 1) {
    for (; count > 0 && next_ < text_.size(); --count, ++next_) {
      at_ = text_[next_] == '\n' ? Position{at_.line + 1, 1} : Position{at_.line, at_.column + 1};
    }
  }

  // Up to and including `end`, which must come.
  void advance_past(std::string_view end, const char* what) {
    const std::size_t found = text_.find(end, next_);
    if (found == std::string_view::npos) refuse(at_, std::string(what) + " has no end");
    advance(found + end.size() - next_);
  }

  void skip_blanks() {
    for (;;) {
      if (std::isspace(static_cast<unsigned char>(peek())) != 0) {
        advance();
      } else if (peek() == '/' && peek(1) == '/') {
        while (next_ < text_.size() && peek() != '\n') advance();
      } else if (peek() == '/' && peek(1) == '*') {
        const Position begin = at_;
        advance(2);
        if (text_.find("*/", next_) == std::string_view::npos) refuse(begin, "comment has no end");
        advance_past("*/", "comment");
      } else {
        return;
      }
    }
  }

  Token token() {
    const Position begin = at_;
    const std::size_t first = next_;
    const char c = peek();
    const auto made = [&](Token::Kind kind) {
      return Token{kind, text_.substr(first, next_ - first), begin};
    };
    if (is_letter(c) || (c == '.' && is_letter(peek(1)))) {
      advance_word();
      return made(Token::Kind::word);
    }
    if (is_digit(c)) {
      advance_number();
      return made(Token::Kind::number);
    }
    if (c == '"') {
      advance();
      advance_past("\"", "string");
      return {Token::Kind::string, text_.substr(first + 1, next_ - first - 2), begin};
    }
    if (std::string_view("{}()[]<>,;:=|!@+-*").find(c) == std::string_view::npos) {
      refuse(begin, std::string("no PTX begins with '") + c + "'");
    }
    advance();
    return made(Token::Kind::punctuation);
  }

  // "::" joins a word ("shared::cta"); a single colon ends a label.
  void advance_word() {
    for (;;) {
      if (is_in_word(peek())) {
        advance();
      } else if (peek() == ':' && peek(1) == ':' && (is_letter(peek(2)) || is_digit(peek(2)))) {
        advance(2);
      } else {
        return;
      }
    }
  }

  void advance_number() {
    const bool is_decimal = peek() != '0' || is_digit(peek(1)) || peek(1) == '.';
    while (is_in_word(peek()) || (is_decimal && (peek() == '+' || peek() == '-') &&
                                  (text_[next_ - 1] == 'e' || text_[next_ - 1] == 'E'))) {
      advance();
    }
  }

  std::string_view text_;
  std::size_t next_ = 0;
  Position at_{1, 1};
};

}  // namespace

std::vector<Token> tokens(std::string_view text) { return Lexer(text).run(); }

}  // namespace attest::ptx
