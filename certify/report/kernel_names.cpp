#include "certify/report/kernel_names.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "certify/digest.hpp"

namespace attest::certify {
namespace {

using Key = std::function<std::string(const std::string&)>;

// Names by key, of those that are still alone; nothing where two names have one key.
std::map<std::string, std::optional<std::string>> by_key(const std::set<std::string>& names,
                                                         const Key& key) {
  std::map<std::string, std::optional<std::string>> found;
  for (const std::string& name : names) {
    const auto [entry, first] = found.emplace(key(name), name);
    if (!first) entry->second.reset();
  }
  return found;
}

std::string within_file(const std::string& kernel) {
  return kernel.substr(kernel.find(':') + 1);  // of a built-in name all
}

}  // namespace

std::string without_folder(const std::string& kernel) {
  const std::size_t colon = kernel.find(':');
  if (colon == std::string::npos) return kernel;
  const std::size_t slash = kernel.rfind('/', colon);
  return slash == std::string::npos ? kernel : kernel.substr(slash + 1);
}

std::string file_word(const std::string& kernel) {
  constexpr std::size_t kMostBytes = 100, kDigits = 8;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  std::string word;
  bool alone = kernel.size() <= kMostBytes && !kernel.empty() && plain(kernel.front());
  for (const char c : kernel) {
    alone = alone && (plain(c) || c == '/');
    word += plain(c) ? c : '-';
  }
  if (alone) return word;
  if (word.size() > kMostBytes) word.erase(0, word.size() - kMostBytes);
  word.erase(0, std::min(word.find_first_not_of('-'), word.size()));  // no option
  return (word.empty() ? "kernel" : word) + "." + sha256(kernel).substr(0, kDigits);
}

std::map<std::string, std::string> same_kernels(const std::vector<std::string>& before,
                                                const std::vector<std::string>& after) {
  std::set<std::string> old(before.begin(), before.end()), now(after.begin(), after.end());
  std::map<std::string, std::string> same;
  const Key whole = [](const std::string& name) { return name; };
  for (const Key& key : {whole, Key(without_folder), Key(within_file)}) {
    const auto first = by_key(old, key);
    for (const auto& [word, name] : by_key(now, key)) {
      const auto known = first.find(word);
      if (!name || known == first.end() || !known->second) continue;
      same[*name] = *known->second;
      old.erase(*known->second);
      now.erase(*name);
    }
  }
  return same;
}

}  // namespace attest::certify
