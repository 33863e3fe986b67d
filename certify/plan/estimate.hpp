#pragma once

#include <functional>

#include "certify/campaign/campaign_options.hpp"
#include "core/abi/attest_kernel.h"

namespace attest::certify {

/// Duration of a campaign before it runs: checks of the shard, and the cases they are of.
struct Estimate {
  std::uint64_t cases = 0, checks = 0;
  double seconds = 0;         // with options.jobs threads
  double sample_seconds = 0;  // that the checks took which the estimate rests on
};

/// Runs a sample of a campaign's checks, spread over their sizes, and extrapolates by the size of
/// the others. It leaves out cases for gaps, the shrinking of findings and counts of schedules, and
/// tells no finding. Cost: up to 48 checks, none begun after 10 s.
/// [certify/plan/estimate_test]
Estimate estimate_campaign(const attest_kernel& kernel, const CampaignOptions& options,
                           const std::function<bool()>& interrupted);

}  // namespace attest::certify
