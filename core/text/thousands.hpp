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

/// Returns the number and its noun: "1 case", "2,000 cases".  [core/text/thousands_test]
template <std::integral Integer>
std::string counted(Integer number, const std::string& noun) {
  return thousands(number) + " " + noun + (number == 1 ? "" : "s");
}

}  // namespace attest
