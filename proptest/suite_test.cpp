// Every law over every registered kernel.
#include <cstdio>
#include <map>

#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "proptest/testing/law_count.hpp"

namespace attest::proptest {
namespace {

// Laws that a kernel's description may take it out of altogether.
bool declared_away(const Law& law, const attest_kernel& kernel) {
  const attest_description& d = kernel.description;
  const bool forward_only = (d.directions & ATTEST_BACKWARD) == 0;
  if (law.name == "split_merge") return (d.features & ATTEST_LSE) == 0;
  if (law.name == "uniform_probe") {
    return d.numerics.exp_zero_not_one != 0 || d.numerics.lse_splits != 0;
  }
  for (const char* backward :
       {"reference_backward", "linearity_in_do", "gradient_identity", "score_identity"}) {
    if (law.name == backward) return forward_only;
  }
  return d.numerics.nondeterministic != 0;
}

TEST_CASE("every law holds for every registered kernel", "[laws]") {
  Registry registry;
  register_cpu(registry);
  constexpr std::uint64_t kCases = 40, kSeed = 1;
  std::map<std::string_view, LawCount> counts;
  for (const attest_kernel* kernel : registry.kernels()) {
    for (const Law& law : laws()) {
      if (!concerns(law, kernel->description)) continue;
      const LawCount count = count_law(law, *kernel, kSeed, kCases);
      counts[law.name] += count;
      // A sum over kernels would hide a kernel for which the law says nothing.
      const bool unsupported = count.unsupported == static_cast<int>(kCases);
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

TEST_CASE("split_merge refuses no correct kernel whose LSE has an infinite bound", "[laws]") {
  Registry registry;
  register_cpu(registry);
  Case c;
  c.problem = Problem::parse("sq=64,sk=40,d=64,dtype=bf16,scale=1e7");
  const LawResult result = find_law("split_merge").check(registry.find("cpu/flash2"), c);
  INFO(result.message);
  CHECK(graver(result.verdict, Verdict::passed) == Verdict::passed);
}

}  // namespace
}  // namespace attest::proptest
