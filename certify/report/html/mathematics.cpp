#include "certify/report/html/mathematics.hpp"

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "certify/report/html/markup.hpp"

namespace attest::certify {
namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

// The text from `at` on of a bracket that opens there, without the bracket, and the place after it.
struct Part {
  std::string_view inner;
  std::size_t end;
};

std::optional<Part> bracketed(std::string_view text, std::size_t at, char open, char close) {
  if (at >= text.size() || text[at] != open) return std::nullopt;
  std::size_t depth = 0;
  for (std::size_t k = at; k < text.size(); ++k) {
    if (text[k] == open) ++depth;
    if (text[k] == close && --depth == 0) return Part{text.substr(at + 1, k - at - 1), k + 1};
  }
  return std::nullopt;
}

// The exponent that stands after ^ at `at`: (…), {…}, a number or a letter.
std::optional<Part> exponent(std::string_view text, std::size_t at) {
  if (const auto part = bracketed(text, at, '(', ')')) return part;
  if (const auto part = bracketed(text, at, '{', '}')) return part;
  std::size_t end = at;
  if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
  const std::size_t digits = end;
  while (end < text.size() && is_digit(text[end])) ++end;
  if (end == digits && end < text.size() && is_letter(text[end])) ++end;
  if (end == digits) return std::nullopt;
  return Part{text.substr(at, end - at), end};
}

// The index of a letter at `at`: "k" of d_k, of up to three letters or digits.
std::optional<Part> index_of(std::string_view text, std::size_t at) {
  constexpr std::size_t kMost = 3;
  const bool stands_alone = at == 0 || !is_word(text[at - 1]);
  if (!stands_alone || !is_letter(text[at]) || at + 1 >= text.size() || text[at + 1] != '_') {
    return std::nullopt;
  }
  std::size_t end = at + 2;
  while (end < text.size() && is_word(text[end]) && text[end] != '_') ++end;
  if (end == at + 2 || end > at + 2 + kMost || (end < text.size() && text[end] == '_')) {
    return std::nullopt;
  }
  return Part{text.substr(at + 2, end - at - 2), end};
}

// How the parts of a formula are written.
struct Notation {
  std::function<std::string(std::string_view)> plain;
  std::function<std::string(std::string_view)> power;                    // after its base
  std::function<std::string(char, std::string_view)> index;              // d, k
  std::function<std::string(std::string_view inner, std::string)> root;  // and the inner typeset
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kSigns{
    {{"<=", "\u2264"},
     {">=", "\u2265"},
     {"Theta(", "\u0398("},
     {"Omega(", "\u03a9("},
     {"theta =", "\u03b8 ="}}};

std::string typeset(std::string_view text, const Notation& notation) {
  std::string result;
  std::size_t begin = 0, at = 0;
  const auto put = [&](const std::string& part, std::size_t end) {
    result += notation.plain(text.substr(begin, at - begin)) + part;
    begin = at = end;
  };
  while (at < text.size()) {
    const std::string_view rest = text.substr(at);
    const bool begins_word = at == 0 || !is_word(text[at - 1]);
    if (begins_word && rest.substr(0, 5) == "sqrt(") {
      if (const auto part = bracketed(text, at + 4, '(', ')')) {
        put(notation.root(part->inner, typeset(part->inner, notation)), part->end);
        continue;
      }
    }
    if (text[at] == '^' && at > 0 && (is_word(text[at - 1]) || text[at - 1] == ')')) {
      if (const auto part = exponent(text, at + 1)) {
        put(notation.power(part->inner), part->end);
        continue;
      }
    }
    if (const auto part = index_of(text, at)) {
      put(notation.index(text[at], part->inner), part->end);
      continue;
    }
    bool found = false;
    for (const auto& [word, sign] : kSigns) {
      if (rest.substr(0, word.size()) != word || (is_letter(word[0]) && !begins_word)) continue;
      put(std::string(sign), at + word.size());
      found = true;
      break;
    }
    if (!found) ++at;
  }
  put("", at);
  return result;
}

// Superscripts that Unicode has.
std::optional<std::string> superscript(std::string_view text) {
  constexpr std::array<std::string_view, 10> kDigits{"\u2070", "\u00b9", "\u00b2", "\u00b3",
                                                     "\u2074", "\u2075", "\u2076", "\u2077",
                                                     "\u2078", "\u2079"};
  std::string raised;
  for (const char c : text) {
    if (is_digit(c)) {
      raised += kDigits[static_cast<std::size_t>(c - '0')];
    } else if (c == '-') {
      raised += "\u207b";
    } else {
      return std::nullopt;
    }
  }
  return raised;
}

}  // namespace

std::string mathematics(std::string_view text) {
  return typeset(text,
                 {[](std::string_view part) { return escaped(part); },
                  [](std::string_view power) { return "<sup>" + mathematics(power) + "</sup>"; },
                  [](char letter, std::string_view index) {
                    return std::string(1, letter) + "<sub>" + escaped(index) + "</sub>";
                  },
                  [](std::string_view, const std::string& inner) {
                    return "\u221a<span class=\"root\">" + inner + "</span>";
                  }});
}

std::string plain_mathematics(std::string_view text) {
  return typeset(text, {[](std::string_view part) { return std::string(part); },
                        [](std::string_view power) {
                          const auto raised = superscript(power);
                          return raised ? *raised : "^(" + std::string(power) + ")";
                        },
                        [](char letter, std::string_view index) {
                          return std::string(1, letter) + "_" + std::string(index);
                        },
                        [](std::string_view inner, const std::string& set) {
                          return inner.size() == 1 ? "\u221a" + set : "\u221a(" + set + ")";
                        }});
}

}  // namespace attest::certify
