#pragma once

#include <vector>

#include "certify/campaign/campaign.hpp"

namespace attest::certify {

/// Reduces finding.found to the smallest case that fails in the same way (verdict and fault) and
/// puts it, its message and what else a process must do until it fails into the finding: checks of
/// the case itself, or the fewest of `sequence`, the checks of the process that met the finding.
/// Says of a case that fails with several threads alone how often. Ends early, with the smallest
/// case so far, when interrupted.
/// [certify/campaign/campaign_test "a good kernel", certify/findings/state_finding_test]
void shrink_finding(const attest_kernel& kernel, Finding& finding,
                    const std::vector<proptest::Case>& sequence, const Interrupted& interrupted);

}  // namespace attest::certify
