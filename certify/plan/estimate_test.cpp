#include "certify/plan/estimate.hpp"

#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"

namespace attest::certify {
namespace {

CampaignOptions small() {
  CampaignOptions options;
  options.cases = 4;
  options.law = "ones";
  return options;
}

TEST_CASE("an estimate counts the checks of a campaign, and of a shard", "[estimate]") {
  Registry registry;
  register_cpu(registry);
  const attest_kernel& kernel = registry.find("cpu/standard");
  CampaignOptions options = small();
  const auto never = [] { return false; };
  const Estimate whole = estimate_campaign(kernel, options, never);
  CHECK(whole.cases == 4);
  CHECK(whole.checks == 4);
  CHECK(whole.seconds > 0);
  CHECK(whole.sample_seconds > 0);
  options.law.reset();
  const std::uint64_t all = estimate_campaign(kernel, options, [] { return true; }).checks;
  std::uint64_t parts = 0;
  for (const std::uint32_t index : {1u, 2u, 3u}) {
    options.shard = {index, 3};
    parts += estimate_campaign(kernel, options, [] { return true; }).checks;
  }
  CHECK(parts == all);
  CHECK(estimate_campaign(kernel, options, [] { return true; }).seconds == 0);
}

}  // namespace
}  // namespace attest::certify
