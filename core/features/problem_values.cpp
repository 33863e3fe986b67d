#include "core/features/problem_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "core/text/shortest.hpp"
#include "core/text/suggest.hpp"

namespace attest {
namespace {

template <typename Number>
Number number_of(const std::string& key, const std::string& text, const char* needed) {
  Number value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    throw InvalidProblem("problem: " + key + "=" + text + " is not " + needed);
  }
  return value;
}

}  // namespace

std::int64_t integer_of(const std::string& key, const std::string& text) {
  return number_of<std::int64_t>(key, text, "an integer below 2^63");
}

double real_of(const std::string& key, const std::string& text) {
  return number_of<double>(key, text, "a number");
}

std::size_t place_of(const std::string& key, const std::string& text,
                     const std::vector<std::string>& choices) {
  const auto found = std::find(choices.begin(), choices.end(), text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  std::string list;
  for (const std::string& choice : choices) list += " " + choice;
  throw InvalidProblem("problem: " + key + "=" + text + " is unknown" +
                       did_you_mean(text, choices) + " (choices:" + list + ")");
}

void require_normal_float32(std::string_view what, double value, std::string_view otherwise) {
  using Float = std::numeric_limits<float>;
  const double magnitude = std::abs(value);
  if (value == 0 || (magnitude >= Float::min() && magnitude <= Float::max())) return;
  throw InvalidProblem(std::string(what) + " is " + shortest(value) + ", which is " +
                       (magnitude > Float::max() ? "infinite" : "not normal") +
                       " in float32; pass " + std::string(otherwise) +
                       ", a magnitude from 1.18e-38 to 3.40e38, or dtype=f64");
}

}  // namespace attest
