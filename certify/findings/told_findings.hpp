#pragma once

#include <vector>

#include "certify/campaign/batches.hpp"
#include "certify/campaign/campaign.hpp"

namespace attest::certify {

/// The findings of a campaign as they are told: each shrunk and looked at, those of laws that
/// compare with the reference first; what fails of the cause of an earlier one is folded into it.
/// [certify/findings/same_cause_test "one mistake is one finding"]
std::vector<Finding> told_findings(Run& run, const std::vector<PlannedCase>& plan,
                                   std::vector<Finding> findings);

/// Returns the evidence that a finding shows besides its message: signatures, suspicions, and hints
/// where neither explains it.
Evidence evidence_of(const attest_kernel& kernel, const Finding& finding);

}  // namespace attest::certify
