#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "gpu/ptx/text/module.hpp"

namespace attest::ptx {

/// The things that a name can stand for.
struct NamedRegister {
  Type type;
  std::uint32_t slot;
};
struct NamedVariable {
  Space space;
  std::uint64_t address;  // in its space; of extern shared memory, from its beginning on
  bool is_extern_shared;
};
struct NamedParameter {
  std::size_t offset, bytes;
};
struct NamedLabel {
  std::size_t statement;
};
struct NamedTargets {  // of an indexed branch
  std::vector<std::size_t> statements;
};
using Named = std::variant<NamedRegister, NamedVariable, NamedParameter, NamedLabel, NamedTargets>;

/// Names of a function by scope; an inner one hides an outer one.
class Names {
 public:
  explicit Names(const std::vector<int>& scopes) : scopes_(scopes) {}

  /// Throws InvalidProblem where the scope has that name already.
  void add(int scope, const std::string& name, Named named, Position at);
  /// Null for an unknown name.
  const Named* find(int scope, const std::string& name) const;
  /// All names, for suggestions.
  std::vector<std::string> all() const;

 private:
  std::vector<int> scopes_;
  std::unordered_map<std::string, std::unordered_map<int, Named>> named_;
};

}  // namespace attest::ptx
