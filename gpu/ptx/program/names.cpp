#include "gpu/ptx/program/names.hpp"

#include <algorithm>

namespace attest::ptx {

void Names::add(int scope, const std::string& name, Named named, Position at) {
  if (!named_[name].emplace(scope, named).second) {
    refuse(at, "'" + name + "' is declared twice in one scope");
  }
}

const Named* Names::find(int scope, const std::string& name) const {
  const auto known = named_.find(name);
  if (known == named_.end()) return nullptr;
  for (; scope >= 0; scope = scopes_[static_cast<std::size_t>(scope)]) {
    const auto here = known->second.find(scope);
    if (here != known->second.end()) return &here->second;
  }
  return nullptr;
}

std::vector<std::string> Names::all() const {
  std::vector<std::string> names;
  names.reserve(named_.size());
  for (const auto& [name, scopes] : named_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace attest::ptx
