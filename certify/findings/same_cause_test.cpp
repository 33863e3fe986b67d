#include "certify/findings/same_cause.hpp"

#include <algorithm>
#include <set>

#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using fixtures::Defect;

attest_kernel without_models(attest_kernel kernel) {
  kernel.description.max_head_dim = 16;
  return kernel;
}

CampaignResult campaign_of(const attest_kernel& kernel) {
  CampaignOptions options;
  options.cases = 12;
  return run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
}

std::uint64_t failed_laws(const CampaignResult& result) {
  std::uint64_t count = 0;
  for (const auto& [law, of_law] : result.laws) count += of_law.failed;
  return count;
}

// Every law that failed is told of, once.
void check_told_once(const CampaignResult& result) {
  std::multiset<std::string> told;
  for (const Finding& finding : result.findings) {
    told.insert(finding.law);
    told.insert(finding.also.begin(), finding.also.end());
  }
  CHECK(told.size() == failed_laws(result));
  for (const std::string& law : told) CHECK(told.count(law) == 1);
}

TEST_CASE("outputs that a result refuses", "[findings]") {
  proptest::Comparison wrong, right;
  wrong.output = "sum of V o dV";
  wrong.verdict = Verdict::violated;
  right.output = "dQ";
  using Outputs = std::set<std::string>;
  CHECK(refused_outputs({Verdict::violated, "", {wrong, right}}) == Outputs{"dV"});
  CHECK(refused_outputs(
            {Verdict::violated,
             "the law holds, but the results are wrong: outside the proved bound: O[batch=0] is 1, "
             "exact 2; dLSE[batch=0]",
             {}}) == Outputs{"O"});
  CHECK(refused_outputs({Verdict::improbable, "dQ: rms of error over sigma", {}}) == Outputs{"dQ"});
  CHECK(refused_outputs({Verdict::violated, "failed: the call", {}}).empty());
}

TEST_CASE("one mistake is one finding", "[findings]") {
  const CampaignResult result =
      campaign_of(without_models(fixtures::defective_kernel(Defect::mean_of_v)));
  REQUIRE(result.findings.size() == 1);
  CHECK(result.findings.front().law == "reference_forward");
  CHECK(result.findings.front().also.size() >= 2);
  CHECK(failed_laws(result) == result.findings.front().also.size() + 1);
  CHECK(exit_code({result}) == 1);
  check_told_once(result);
}

// Probes and permutations say nothing of one query and one key, the smallest case of the first.
TEST_CASE("a law that needs a larger case is folded by that case", "[findings]") {
  const CampaignResult result =
      campaign_of(without_models(fixtures::defective_kernel(Defect::dv_halved)));
  check_told_once(result);
  REQUIRE(result.findings.size() == 1);
  const auto& also = result.findings.front().also;
  CHECK(std::count(also.begin(), also.end(), "one_hot_probe") == 1);
  CHECK(result.laws.at("one_hot_probe").failed == 1);
}

// dV is wrong in one way, LSE in another.
attest_status shifted_lse(const void*, const attest_forward_args* args) {
  const attest_kernel& sound = fixtures::defective_kernel(Defect::lse_shifted);
  return sound.forward(sound.self, args);
}
attest_status halved_dv(const void*, const attest_backward_args* args) {
  const attest_kernel& sound = fixtures::defective_kernel(Defect::dv_halved);
  return sound.backward(sound.self, args);
}

TEST_CASE("two mistakes are two findings", "[findings]") {
  attest_kernel kernel = without_models(fixtures::defective_kernel(Defect::none));
  kernel.forward = shifted_lse;
  kernel.backward = halved_dv;
  const CampaignResult result = campaign_of(kernel);
  check_told_once(result);
  REQUIRE(result.findings.size() >= 2);
  std::set<std::string> outputs;
  for (const Finding& finding : result.findings) {
    const proptest::LawResult again = proptest::find_law(finding.law).check(kernel, finding.shrunk);
    CHECK(again.verdict == Verdict::violated);
    const auto refused = refused_outputs(again);
    outputs.insert(refused.begin(), refused.end());
  }
  CHECK(outputs.count("LSE") == 1);
  CHECK(outputs.count("dV") == 1);
}

TEST_CASE("a mistake in both directions is one finding", "[findings]") {
  const CampaignResult result =
      campaign_of(without_models(fixtures::defective_kernel(Defect::top_left_causal)));
  check_told_once(result);
  REQUIRE_FALSE(result.findings.empty());
  std::multiset<std::string> mistakes;
  for (const Finding& finding : result.findings) {
    for (const auto& signature : finding.evidence.signatures) mistakes.insert(signature.name);
  }
  CHECK(mistakes.count("top_left_causal") == 1);
}

TEST_CASE("findings that show one way to game the judge are one", "[findings]") {
  Finding by_shape, by_pointer, ordinary;
  by_shape.evidence.suspicions = {{"result_by_shape", ""}};
  by_pointer.evidence.suspicions = {{"result_by_pointer", ""}};
  CHECK(same_mistake(by_shape, by_shape));
  CHECK_FALSE(same_mistake(by_shape, by_pointer));
  CHECK_FALSE(same_mistake(ordinary, ordinary));
}

}  // namespace
}  // namespace attest::certify
