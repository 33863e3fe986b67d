#include "python/api/options.hpp"

#include <algorithm>
#include <charconv>

#include "core/error.hpp"
#include "core/text/suggest.hpp"

namespace attest::python {

void read_options(std::string_view line, const std::vector<Option>& options,
                  const std::string& example) {
  while (!line.empty()) {
    const std::string word(line.substr(0, line.find(' ')));
    line.remove_prefix(std::min(line.size(), word.size() + 1));
    if (word.empty()) continue;
    const std::string name = word.substr(0, word.find('='));
    std::vector<std::string> names;
    names.reserve(options.size());
    for (const Option& option : options) names.push_back(option.name);
    const auto known = std::find(names.begin(), names.end(), name);
    if (known == names.end() || name == word) {
      throw InvalidProblem("unknown option '" + word + "'" + did_you_mean(name, names) +
                           "; write for example " + example);
    }
    options[static_cast<std::size_t>(known - names.begin())].read(word.substr(name.size() + 1));
  }
}

std::uint64_t whole_number(const std::string& name, const std::string& text, std::uint64_t least,
                           std::uint64_t most) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (whole && value >= least && value <= most) return value;
  throw InvalidProblem(name + "=" + text + " must be a whole number from " + std::to_string(least) +
                       " to " + std::to_string(most));
}

}  // namespace attest::python
