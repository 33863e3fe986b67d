#pragma once

#include "certify/campaign.hpp"

namespace attest::certify::cli {

/// The outcome of a campaign as a person reads it: CERTIFIED, LAW HOLDS, INCOMPLETE, REFUSED, …
std::string headline(const CampaignResult& result);

/// Prints what a campaign found, for people: verdict, laws, worst ratios, findings with the line
/// that reproduces each.
void print_result(const attest_kernel& kernel, const CampaignResult& result);

/// Prints the words of the schedule that a kernel names, beside the lower bounds.
void print_io(const ScheduleAudit& io);

/// The first finding only, in three lines.
void print_finding(const std::string& kernel, const Finding& finding);

}  // namespace attest::certify::cli
