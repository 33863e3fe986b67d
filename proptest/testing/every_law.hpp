#pragma once

#include <bit>
#include <cstdio>
#include <map>
#include <string_view>

#include "core/registry.hpp"
#include "proptest/testing/law_count.hpp"

namespace attest::proptest {

/// Laws that a kernel's description may take it out of altogether.
inline bool declared_away(const Law& law, const attest_kernel& kernel) {
  const attest_description& d = kernel.description;
  const bool forward_only = (d.directions & ATTEST_BACKWARD) == 0;
  if (law.name == "split_merge") return (d.features & ATTEST_LSE) == 0;
  if (law.name == "sparsity_forms") {
    // Blocks alone are met as blocks of two sizes.
    constexpr std::uint32_t kOthers = ATTEST_CSR_MASK | ATTEST_NM_MASK | ATTEST_BOOLEAN_MASK;
    return (d.features & ATTEST_BLOCK_MASK) == 0 && std::popcount(d.features & kOthers) < 2;
  }
  for (const char* backward :
       {"reference_backward", "linearity_in_do", "gradient_identity", "score_identity"}) {
    if (law.name == backward) return forward_only;
  }
  return d.numerics.nondeterministic != 0;
}

inline constexpr std::uint64_t kSuiteSeed = 1;

/// Every law on the first cases of every kernel: it holds, and says something of each kernel.
inline void check_every_law(const Registry& registry, std::uint64_t cases,
                            const Check& check = check_plainly) {
  std::map<std::string_view, LawCount> counts;
  for (const attest_kernel* kernel : registry.kernels()) {
    for (const Law& law : laws()) {
      if (!concerns(law, kernel->description)) continue;
      const LawCount count = count_law(law, *kernel, kSuiteSeed, cases, check);
      counts[law.name] += count;
      // A sum over kernels would hide a kernel for which the law says nothing.
      const bool unsupported = count.unsupported == static_cast<int>(cases);
      INFO(kernel->description.name << " " << law.name << ": passed never");
      CHECK((count.passed > 0 || (unsupported && declared_away(law, *kernel))));
    }
  }
  for (const auto& [law, count] : counts) {
    std::printf("%-24.*s passed %4d  vacuous %4d  unsupported %4d\n", static_cast<int>(law.size()),
                law.data(), count.passed, count.vacuous, count.unsupported);
    INFO(law);
    CHECK(count.passed > 0);
  }
}

}  // namespace attest::proptest
