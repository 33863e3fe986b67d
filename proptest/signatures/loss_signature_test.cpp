#include "proptest/signatures/loss_signature.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/testing/catch.hpp"
#include "core/testing/nightly.hpp"
#include "fixtures/register.hpp"
#include "proptest/laws/law.hpp"
#include "proptest/signatures/loss_alternatives.hpp"
#include "proptest/values/generator.hpp"

namespace attest::proptest {
namespace {

using fixtures::LossDefect;

constexpr std::uint64_t kSeed = 2, kCases = 60;

bool fails(const LawResult& result) { return result.verdict == Verdict::violated; }

std::set<std::string> names_of(const attest_kernel& kernel) {
  const Law& law = find_law("reference_loss");
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const Case found = generate(kernel.description, Tier::smoke, kSeed, index);
    if (!fails(law.check(kernel, found))) continue;
    const Case shrunk =
        shrink(found, [&](const Case& smaller) { return fails(law.check(kernel, smaller)); });
    std::set<std::string> names;
    for (const Signature& one : signatures_of(kernel, shrunk, found)) names.insert(one.name);
    return names;
  }
  FAIL("no case refuses " << kernel.description.name);
  return {};
}

// Results computed without the reference must be right where nothing deviates.
TEST_CASE("without a deviation the loss gradient is the reference's", "[signature]") {
  const attest_kernel& correct = fixtures::defective_loss_kernel(LossDefect::none);
  int judged = 0;
  for (std::uint64_t index = 0; index < kCases; ++index) {
    const Case c = generate(correct.description, Tier::smoke, kSeed, index);
    const LossValues values = make_loss_values(c.problem, c.values, c.seed);
    const LossTruth truth(correct.description, c.problem, values);
    if (!truth.in_domain()) continue;
    LossRun run;
    const DeviantLoss deviant = deviant_loss(values, LossDeviation::none);
    run.dX = deviant.dX.value;
    run.dY = deviant.dY.value;
    INFO(c.problem.to_string() << " values=" << name(c.values));
    for (const Comparison& comparison : truth.judge(run)) {
      CHECK(comparison.verdict == Verdict::passed);
    }
    ++judged;
  }
  CHECK(judged > 0);
}

TEST_CASE("every signature of the loss gradient is of its defect and of no other", "[signature]") {
  const std::map<LossDefect, std::string> expected{
      {LossDefect::zero_dx, "zero_dx"},
      {LossDefect::zero_dy, "zero_dy"},
      {LossDefect::delta_omitted, "delta_omitted"},
      {LossDefect::target_ignored, "target_ignored"},
      {LossDefect::target_negated, "target_negated"},
      {LossDefect::last_key_dropped, "last_key_dropped"},
      {LossDefect::x_transposed, "x_transposed"},
      {LossDefect::y_transposed, "y_transposed"},
      {LossDefect::normaliser_missing, "normaliser_missing"}};
  std::size_t trial = 0;
  for (const fixtures::LossDefectRecord& record : fixtures::loss_defects()) {
    if (!attest::testing::is_turn(trial++, 3)) continue;
    const auto known = expected.find(record.defect);
    const std::set<std::string> wanted =
        known == expected.end() ? std::set<std::string>() : std::set{known->second};
    INFO(record.name);
    CHECK(names_of(fixtures::defective_loss_kernel(record.defect)) == wanted);
  }
}

TEST_CASE("a loss gradient without a defect has no signature", "[signature]") {
  const attest_kernel& correct = fixtures::defective_loss_kernel(LossDefect::none);
  const std::uint64_t few = attest::testing::is_nightly() ? 20 : 6;
  for (std::uint64_t index = 0; index < few; ++index) {
    const Case c = generate(correct.description, Tier::smoke, kSeed, index);
    CHECK(signatures_of(correct, c, c).empty());
  }
}

}  // namespace
}  // namespace attest::proptest
