// Smallest inputs that the catalogues of defects name do expose the defects.
#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/corpus.hpp"
#include "proptest/laws/law.hpp"

namespace attest::proptest {
namespace {

// Draws of the values. Levels of scores are drawn too, and few levels are beyond -5 * 10^4; one
// field in about twelve is changed between two calls.
constexpr std::uint64_t kDraws = 64;

bool fails(const LawResult& result) {
  return result.verdict == Verdict::violated || result.verdict == Verdict::crashed;
}

// Problems of which every law would take minutes meet the reference alone, as in campaigns.
bool meets(const Law& law, const Problem& problem) {
  constexpr std::int64_t kLong = 4096;
  const bool reference = law.name.rfind("reference_", 0) == 0;
  return reference || std::max(problem.seqlen_q, problem.seqlen_k) <= kLong;
}

// The law that refuses the kernel on a problem with normal values; "" when none does.
std::string refusing_law(const attest_kernel& kernel, const std::string& problem,
                         std::uint64_t draws) {
  for (std::uint64_t seed = 1; seed <= draws; ++seed) {
    const Case c{Problem::parse(problem), Values::normal, seed, 1};
    for (const Law& law : laws()) {
      if (!meets(law, c.problem)) continue;
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
  const std::uint64_t draws_of_correct = attest::testing::is_nightly() ? 8 : 1;
  std::set<std::pair<const attest_kernel*, std::string>> passed;  // defects share inputs
  std::size_t place = 0;
  for (const fixtures::CorpusEntry& entry : fixtures::defect_corpus()) {
    if (!attest::testing::is_turn(place++, 4)) continue;
    INFO(entry.kernel->description.name << " " << entry.smallest);
    CHECK_FALSE(refusing_law(*entry.kernel, entry.smallest, kDraws).empty());
    const auto same = std::find_if(correct.begin(), correct.end(), [&](const auto* kernel) {
      return kernel->description.directions == entry.kernel->description.directions;
    });
    REQUIRE(same != correct.end());
    if (!passed.insert({*same, entry.smallest}).second) continue;
    CHECK(refusing_law(**same, entry.smallest, draws_of_correct).empty());
  }
}

}  // namespace
}  // namespace attest::proptest
