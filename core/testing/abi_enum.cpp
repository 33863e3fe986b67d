#include "core/testing/abi_enum.hpp"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <regex>
#include <stdexcept>
#include <vector>

namespace attest::testing {

std::string abi_header() {
  std::ifstream file(ATTEST_ABI_HEADER);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string edited(std::string text, const std::string& was, const std::string& is) {
  return text.replace(text.find(was), was.size(), is);
}

std::multiset<Enumerator> enumerators(const std::string& header, const std::string& opening) {
  const std::size_t begin = header.find(opening);
  const std::string whole = header.substr(begin, header.find("\n}", begin) - begin);
  const std::string text =
      std::regex_replace(whole.substr(whole.find('{') + 1), std::regex(R"(/\*[^]*?\*/)"), "");
  static const std::regex form(R"(\s*(ATTEST_\w+)\s*=\s*(1u? << )?(\d+)\s*(,|$))");
  std::multiset<Enumerator> found;
  std::size_t read = 0;
  for (std::sregex_iterator at(text.begin(), text.end(), form), end; at != end; ++at) {
    const auto value = static_cast<std::uint32_t>(std::stoul((*at)[3]));
    found.emplace((*at)[2].matched ? 1u << value : value, (*at)[1]);
    read += static_cast<std::size_t>(at->length());
  }
  if (read != text.size()) throw std::runtime_error("not all of an enum is read:\n" + text);
  return found;
}

std::set<std::string> differing(const std::multiset<Enumerator>& one,
                                const std::multiset<Enumerator>& other) {
  std::vector<Enumerator> apart;
  std::set_symmetric_difference(one.begin(), one.end(), other.begin(), other.end(),
                                std::back_inserter(apart));
  std::set<std::string> names;
  for (const auto& [value, name] : apart) names.insert(name);
  return names;
}

}  // namespace attest::testing
