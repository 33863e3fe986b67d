#pragma once

#include <vector>

#include "certify/campaign/campaign_options.hpp"
#include "core/abi/attest_kernel.h"

namespace attest::certify::cli {

/// Prints how long campaigns will take, of each kernel and all together, as text or as JSON. The
/// exit status: 0, or 3 when interrupted.  [certify/cli/tests/campaign_test]
int tell_estimates(const std::vector<const attest_kernel*>& kernels, const CampaignOptions& options,
                   bool as_json);

}  // namespace attest::certify::cli
