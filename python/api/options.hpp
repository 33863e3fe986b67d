#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace attest::python {

/// An option of a line like "tier=fast seed=7", and how it is read.
struct Option {
  std::string name;
  std::function<void(const std::string& text)> read;
};

/// Reads a line of options with blanks between them. Throws InvalidProblem for an unknown one, with
/// the nearest name and the example, and what `read` throws.
/// [python/api/campaign_test "options that make no sense"]
void read_options(std::string_view line, const std::vector<Option>& options,
                  const std::string& example);

/// Returns the value of an option. Throws InvalidProblem where it is no whole number, or lies
/// outside.
std::uint64_t whole_number(const std::string& name, const std::string& text, std::uint64_t least,
                           std::uint64_t most = std::numeric_limits<std::uint64_t>::max());

}  // namespace attest::python
