#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/moved_words.hpp"

namespace attest {

/// The oldest version of the ABI whose kernels are taken.
inline constexpr std::uint32_t kOldestAbiVersion = 1;

/// Features that no kernel of the oldest version can claim.
inline constexpr std::uint32_t kFeaturesOfVersion2 =
    ATTEST_SINKS | ATTEST_PAGED_KV | ATTEST_BIAS | ATTEST_HEAD_MASK | ATTEST_QUERY_LENGTHS |
    ATTEST_OFFSET_WINDOW | ATTEST_SHARED_KV | ATTEST_BATCH_INVARIANT | ATTEST_SPLIT_INVARIANT |
    ATTEST_NONFINITE;

/// Returns "", or why the kernel's version does not go with this program or with its claims.
/// [core/registry_test "versions of the ABI"]
std::string version_objection(const attest_kernel& kernel);

/// The kernels known to a program, in the order they were added. An entry is the ABI struct itself:
/// built-in kernels and plugins are the same thing. Kernels are not owned and must outlive it.
class Registry {
 public:
  /// Adds a kernel, and how its code counts the words that it moves, where it can.
  /// Requires: ABI version and struct sizes known here, a name that is not empty and not taken, a
  /// function for every direction claimed. Else throws InvalidProblem.
  /// [core/registry_test "malformed kernels are refused", "backward needs no LSE"]
  void add(const attest_kernel* kernel, const CountedCode& counted = {});

  /// A name that stands for a kernel elsewhere: find() throws InvalidProblem with `why` ("needs a
  /// CUDA device: ...").  [core/registry_test "a kernel that is not here says why"]
  void add_absent(std::string name, std::string why);

  /// The kernel of that name. Throws InvalidProblem with the nearest name when there is none.
  /// [core/registry_test "unknown names"]
  const attest_kernel& find(std::string_view name) const;

  /// How the code of the kernel of that name counts its words; nulls where it does not.
  CountedCode counted_code(std::string_view name) const;

  const std::vector<const attest_kernel*>& kernels() const { return kernels_; }
  std::vector<std::string> names() const;

 private:
  std::vector<const attest_kernel*> kernels_;
  std::map<std::string, CountedCode, std::less<>> counted_;
  std::map<std::string, std::string, std::less<>> absent_;
};

}  // namespace attest
