#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Values in the spelling of a problem, and their ranges. All throw InvalidProblem, which names the
/// key.  [core/problem_test "refused"]
namespace attest {

/// Returns the integer that is spelled.
std::int64_t integer_of(const std::string& key, const std::string& text);

/// Returns the number that is spelled.
double real_of(const std::string& key, const std::string& text);

/// Returns the place of a word among the choices.
std::size_t place_of(const std::string& key, const std::string& text,
                     const std::vector<std::string>& choices);

/// Returns the enumerator of `values` that is spelled.
template <typename Enum, std::size_t N>
Enum choice_of(const std::string& key, const std::string& text, const std::array<Enum, N>& values) {
  std::vector<std::string> names;
  for (const Enum value : values) names.emplace_back(name(value));
  return values[place_of(key, text, names)];
}

/// Refuses a factor that overflows or loses digits in float32, in which kernels below float64
/// compute. `otherwise`: the value to pass instead.
void require_normal_float32(std::string_view what, double value, std::string_view otherwise);

}  // namespace attest
