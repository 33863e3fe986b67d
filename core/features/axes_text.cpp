#include "core/features/axes_text.hpp"

#include <algorithm>
#include <cstddef>

#include "core/error.hpp"

namespace attest {
namespace {

constexpr std::string_view kLetters = "bhqk";

}  // namespace

std::string axes_text(const FeatureAxes& axes) {
  std::string text;
  for (std::size_t axis = 0; axis < kLetters.size(); ++axis) {
    if (axes[axis]) text += kLetters[axis];
  }
  return text.empty() ? "1" : text;
}

FeatureAxes parse_axes(std::string_view letters, const std::string& where,
                       const std::string& example) {
  if (letters.empty()) throw InvalidProblem(where + " names no axes" + example);
  FeatureAxes axes{};
  std::size_t axis = 0;
  for (const char letter : letters == "1" ? std::string_view() : letters) {
    axis = kLetters.find(letter, axis);
    if (axis == std::string_view::npos) {
      throw InvalidProblem(where + " begins with '" + std::string(letters) +
                           "'; it must begin with the axes that it depends on, letters of bhqk "
                           "(batch, head, query, key) in this order, or 1 for none of them" +
                           example);
    }
    axes[axis++] = true;
  }
  return axes;
}

std::string_view take_word(std::string_view& rest) {
  const std::string_view first = rest.substr(0, rest.find('_'));
  rest.remove_prefix(std::min(first.size() + 1, rest.size()));
  return first;
}

}  // namespace attest
