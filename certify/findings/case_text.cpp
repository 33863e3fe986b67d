#include "certify/findings/case_text.hpp"

#include <charconv>

#include "core/error.hpp"

namespace attest::certify {
namespace {

constexpr const char *kValues = " values=", *kSeed = " seed=", *kThreads = " threads=";

std::uint64_t number_in(const std::string& word, std::uint64_t least, std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || value < least || value > most) {
    throw InvalidProblem("'" + word + "' is no whole number from " + std::to_string(least) +
                         " to " + std::to_string(most));
  }
  return value;
}

// Takes the last word off the text when it begins so; a path in a mask may have blanks.
bool take_word(std::string& text, const std::string& begin, std::string& value) {
  const std::size_t last = text.rfind(' ');
  if (last == std::string::npos || text.compare(last, begin.size(), begin) != 0) return false;
  value = text.substr(last + begin.size());
  text.erase(last);
  return true;
}

}  // namespace

std::string case_text(const proptest::Case& c, const proptest::Case& beside) {
  std::string text = c.problem.to_string();
  if (c.values != beside.values) text += kValues + std::string(proptest::name(c.values));
  if (c.seed != beside.seed) text += kSeed + std::to_string(c.seed);
  if (c.threads != beside.threads) text += kThreads + std::to_string(c.threads);
  return text;
}

proptest::Case parse_case_text(const std::string& text, const proptest::Case& beside) {
  constexpr std::uint64_t kMostThreads = 1024;
  proptest::Case c = beside;
  std::string rest = text, value;
  for (bool found = true; found;) {
    found = false;
    if (take_word(rest, kValues, value)) {
      c.values = proptest::parse_values(value);
      found = true;
    }
    if (take_word(rest, kSeed, value)) {
      c.seed = number_in(value, 0, ~std::uint64_t{0});
      found = true;
    }
    if (take_word(rest, kThreads, value)) {
      c.threads = static_cast<std::int32_t>(number_in(value, 1, kMostThreads));
      found = true;
    }
  }
  c.problem = Problem::parse(rest);
  return c;
}

}  // namespace attest::certify
