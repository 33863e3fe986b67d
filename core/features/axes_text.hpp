#pragma once

#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

/// Spellings and entries of what is the same along some of the axes batch, query head, query, key:
/// biases and masks of heads.
namespace attest {

/// Tells of each axis whether the feature depends on it.
using FeatureAxes = std::array<bool, 4>;

/// Returns the letters of "bhqk" of these axes; "1" without one.
std::string axes_text(const FeatureAxes& axes);

/// Reads them back. Throws InvalidProblem, beginning with `where` and ending with `example`, for
/// letters that are none or not in this order. [core/features/bias_test "spelled"]
FeatureAxes parse_axes(std::string_view letters, const std::string& where,
                       const std::string& example);

/// Takes the word before the next '_', and this, off a text.
std::string_view take_word(std::string_view& rest);

/// Reads a number that is the whole text.
template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

/// Calls a function with each batch entry, head, query and key of these extents, the key fastest.
template <class Function>
void for_each_index(const std::array<std::int64_t, 4>& extents, Function&& function) {
  for (std::int64_t b = 0; b < extents[0]; ++b) {
    for (std::int64_t h = 0; h < extents[1]; ++h) {
      for (std::int64_t i = 0; i < extents[2]; ++i) {
        for (std::int64_t j = 0; j < extents[3]; ++j) function(b, h, i, j);
      }
    }
  }
}

}  // namespace attest
