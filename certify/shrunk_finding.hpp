#pragma once

#include "certify/campaign.hpp"

namespace attest::certify {

/// Reduces finding.found to the smallest case that fails in the same way (verdict and fault) and
/// puts it, its message and how often it must be checked in one process into the finding. Ends
/// early, with the smallest case so far, when interrupted.  [certify/campaign_test "a good kernel"]
void shrink_finding(const attest_kernel& kernel, Finding& finding, const Interrupted& interrupted);

}  // namespace attest::certify
