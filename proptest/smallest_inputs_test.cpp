// What the catalogues of defects call the smallest input that exposes one does expose it.
#include <algorithm>
#include <string>

#include "core/testing/catch.hpp"
#include "fixtures/corpus.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

constexpr std::uint64_t kDraws = 8;  // of the values

bool fails(const LawResult& result) {
  return result.verdict == Verdict::violated || result.verdict == Verdict::crashed;
}

// The law that refuses the kernel on a problem with normal values; "" when none does.
std::string refusing_law(const attest_kernel& kernel, const std::string& problem) {
  for (std::uint64_t seed = 1; seed <= kDraws; ++seed) {
    const Case c{Problem::parse(problem), Values::normal, seed, 1};
    for (const Law& law : laws()) {
      if (concerns(law, kernel.description) && fails(law.check(kernel, c))) {
        return std::string(law.name);
      }
    }
  }
  return "";
}

TEST_CASE("the documented smallest input exposes every defect and no correct variant",
          "[defects]") {
  const std::vector<const attest_kernel*> correct = fixtures::correct_variants();
  for (const fixtures::CorpusEntry& entry : fixtures::defect_corpus()) {
    INFO(entry.kernel->description.name << " " << entry.smallest);
    CHECK_FALSE(refusing_law(*entry.kernel, entry.smallest).empty());
    const auto same = std::find_if(correct.begin(), correct.end(), [&](const auto* kernel) {
      return kernel->description.directions == entry.kernel->description.directions;
    });
    REQUIRE(same != correct.end());
    CHECK(refusing_law(**same, entry.smallest).empty());
  }
}

}  // namespace
}  // namespace attest::proptest
