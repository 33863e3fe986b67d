#include "certify/campaign/campaign.hpp"
#include "certify/certificate.hpp"
#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

using worker::FaultKind;

// Wrong results always, and a fault where heads share keys: some cases meet that, not the first.
attest_status wrong_then_failed(const void*, const attest_forward_args* args) {
  static const attest_kernel wrong = fixtures::defective_kernel(fixtures::Defect::scale_twice);
  if (args->problem->num_heads_q != args->problem->num_heads_kv) return ATTEST_FAILED;
  return wrong.forward(wrong.self, args);
}

attest_kernel wrong_kernel() {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::scale_twice);
  kernel.description.name = "wrong_then_failed";
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.features &= ~std::uint32_t{ATTEST_DLSE};  // an input of backward
  kernel.forward = wrong_then_failed;
  return kernel;
}

CampaignResult campaign(const ExpectedKinds& expected, Journal& journal, unsigned jobs = 1) {
  CampaignOptions options;
  options.cases = 24;
  options.shapes = Shapes::none;
  options.law = "reference_forward";
  options.jobs = jobs;
  Surveillance surveillance{nullptr, &journal};
  surveillance.expected = expected;
  return run_campaign(
      wrong_kernel(), options, [](std::uint64_t, std::uint64_t) {}, surveillance);
}

TEST_CASE("a law goes on after failures of a kind that is expected", "[campaign]") {
  Journal journal;
  const CampaignResult ended = campaign({}, journal);
  REQUIRE(ended.findings.size() == 1);
  CHECK_FALSE(worker::kind_in(ended.findings[0].message));
  CHECK(ended.laws.at("reference_forward").failed == 1);

  // With the journal of a campaign that ended the law, and back again.
  const CampaignResult whole = campaign({std::nullopt}, journal);
  REQUIRE(whole.findings.size() == 2);  // one of each kind
  CHECK(whole.findings[0].message == ended.findings[0].message);
  CHECK(worker::kind_in(whole.findings[1].message) == FaultKind::failed);
  CHECK(whole.laws.at("reference_forward").failed > 2);
  CHECK(campaign({}, journal).findings.size() == 1);
}

TEST_CASE("a law ends at the first failure of another kind", "[campaign]") {
  Journal journal, all;
  const CampaignResult ended = campaign({std::nullopt}, journal);
  const CampaignResult whole = campaign({std::nullopt, FaultKind::failed}, all);
  CHECK(ended.laws.at("reference_forward").failed < whole.laws.at("reference_forward").failed);
  CHECK(whole.checks == whole.planned_checks);
  CHECK(whole.findings.size() == 2);
}

TEST_CASE("what is expected changes with no number of threads", "[campaign]") {
  const auto text = [](unsigned jobs) {
    Journal journal;
    Registry registry;
    const attest_kernel kernel = wrong_kernel();
    registry.add(&kernel);
    auto object = certificate(registry, {}, {campaign({std::nullopt}, journal, jobs)});
    object.erase("timings");
    return object.dump();
  };
  CHECK(text(1) == text(4));
}

}  // namespace
}  // namespace attest::certify
