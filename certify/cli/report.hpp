#pragma once

#include <cstdint>
#include <string>

#include "certify/campaign.hpp"

namespace attest::certify::cli {

/// The outcome of a campaign as a person reads it: CERTIFIED, LAW HOLDS, INCOMPLETE, REFUSED, …
std::string headline(const CampaignResult& result);

/// "60 cases", or where not all were done "12 of 60 cases".  [certify/cli/campaign_test]
std::string cases_text(std::uint64_t done, std::uint64_t planned);

/// Prints what a campaign found, for people: verdict, laws, worst ratios, findings with the line
/// that reproduces each.
void print_result(const attest_kernel& kernel, const CampaignResult& result);

/// Prints how many positions a sample drew at random; nothing for 0.
void print_sampled(std::int64_t positions);

/// Prints the words of the schedule that a kernel names, beside the lower bounds.
void print_io(const ScheduleAudit& io);

/// The first finding only, in three lines.
void print_finding(const std::string& kernel, const Finding& finding);

}  // namespace attest::certify::cli
