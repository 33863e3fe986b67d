// Every law over every registered kernel.
#include <cstdio>
#include <map>

#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "proptest/generator.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

struct Count {
  int passed = 0, vacuous = 0, unsupported = 0;
};

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
  std::map<std::string_view, Count> counts;
  for (const attest_kernel* kernel : registry.kernels()) {
    for (const Law& law : laws()) {
      if (!concerns(law, kernel->description)) continue;
      const Count before = counts[law.name];
      for (std::uint64_t index = 0; index < kCases; ++index) {
        const Case c = generate(kernel->description, Tier::smoke, kSeed, index);
        const LawResult result = law.check(*kernel, c);
        INFO(kernel->description.name << " " << law.name << " " << c.problem.to_string()
                                      << " values=" << name(c.values) << " seed=" << c.seed << ": "
                                      << result.message);
        CHECK(result.verdict != Verdict::violated);
        CHECK(result.verdict != Verdict::improbable);
        CHECK(result.verdict != Verdict::crashed);
        Count& count = counts[law.name];
        count.passed += result.verdict == Verdict::passed ? 1 : 0;
        count.vacuous += result.verdict == Verdict::vacuous ? 1 : 0;
        count.unsupported += result.verdict == Verdict::unsupported ? 1 : 0;
      }
      // A sum over kernels would hide a kernel for which the law says nothing.
      const Count& now = counts[law.name];
      const bool unsupported = now.unsupported - before.unsupported == static_cast<int>(kCases);
      INFO(kernel->description.name << " " << law.name << ": passed never");
      CHECK((now.passed > before.passed || (unsupported && declared_away(law, *kernel))));
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
