#include "core/text/shortest.hpp"

#include <array>
#include <charconv>

namespace attest {

std::string shortest(double value) {
  std::array<char, 32> digits{};
  const auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), value);
  return {digits.data(), end};
}

}  // namespace attest
