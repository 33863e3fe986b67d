#pragma once

#include <concepts>
#include <string>

namespace attest {

/// Returns a whole number's digits with a comma before every three: "1,052,672", "-1,000".
/// [core/text/thousands_test]
std::string digits_apart(std::string digits);

/// Returns the number with a comma before every three digits.
template <std::integral Integer>
std::string thousands(Integer number) {
  return digits_apart(std::to_string(number));
}

}  // namespace attest
