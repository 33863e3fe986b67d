#include "gpu/ptx/text/literal.hpp"

#include <bit>
#include <charconv>
#include <string>

namespace attest::ptx {
namespace {

struct Spelling {
  std::string_view digits;
  int base;
};

Spelling integer_spelling(std::string_view text) {
  if (text.size() > 1 && text.back() == 'U') text.remove_suffix(1);
  if (text.starts_with("0x") || text.starts_with("0X")) return {text.substr(2), 16};
  if (text.starts_with("0b") || text.starts_with("0B")) return {text.substr(2), 2};
  if (text.starts_with("0") && text.size() > 1) return {text.substr(1), 8};
  return {text, 10};
}

bool is_fraction(std::string_view text) {
  return !text.starts_with("0x") && !text.starts_with("0X") &&
         text.find_first_of(".eE") != std::string_view::npos;
}

// The whole of `digits`, else false.
template <class Value, class... Format>
bool reads(std::string_view digits, Value& value, Format... format) {
  const char* const end = digits.data() + digits.size();
  const auto [stop, error] = std::from_chars(digits.data(), end, value, format...);
  return error == std::errc{} && stop == end && !digits.empty() && digits[0] != '-';
}

}  // namespace

Literal literal(const Token& token) {
  const std::string_view text = token.text;
  const auto wrong = [&](const char* why) {
    refuse(token.at, "'" + std::string(text) + "' is no number" + why);
  };
  Literal value;
  const std::string_view prefix = text.substr(0, 2);
  const bool f32 = prefix == "0f" || prefix == "0F", f64 = prefix == "0d" || prefix == "0D";
  if (f32 || f64) {
    value.kind = f32 ? Literal::Kind::f32 : Literal::Kind::f64;
    const std::size_t digits = f32 ? 8 : 16;
    if (text.size() != 2 + digits || !reads(text.substr(2), value.bits, 16)) {
      wrong(f32 ? "; 0f takes eight hexadecimal digits" : "; 0d takes 16 hexadecimal digits");
    }
    return value;
  }
  if (is_fraction(text)) {
    double number = 0;
    if (!reads(text, number)) wrong("");
    return {Literal::Kind::f64, std::bit_cast<std::uint64_t>(number)};
  }
  const Spelling spelling = integer_spelling(text);
  if (!reads(spelling.digits, value.bits, spelling.base)) wrong(" of at most 64 bits");
  return value;
}

Literal negated(Literal value) {
  switch (value.kind) {
    case Literal::Kind::integer:
      value.bits = ~value.bits + 1;
      break;
    case Literal::Kind::f32:
      value.bits ^= std::uint64_t{1} << 31;
      break;
    case Literal::Kind::f64:
      value.bits ^= std::uint64_t{1} << 63;
      break;
  }
  return value;
}

}  // namespace attest::ptx
