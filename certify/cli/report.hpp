#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"
#include "certify/history/known_failures.hpp"

namespace attest::certify::cli {

/// The outcome of a campaign as a person reads it: CERTIFIED, LAW HOLDS, INCOMPLETE, REFUSED, …
std::string headline(const CampaignResult& result);

/// "60 cases", or where not all were done "12 of 60 cases".  [certify/cli/tests/campaign_test]
std::string cases_text(std::uint64_t done, std::uint64_t planned);

/// How much is printed of a campaign: at most 15 lines a kernel beside its findings, or every law,
/// kind of mask, model shape and lower bound.
enum class Detail : std::uint8_t { summary, whole };

/// Prints what a campaign found, for people: verdict, laws, worst ratios, sizes, words beside lower
/// bounds, and findings with the line that reproduces each.  [certify/cli/tests/campaign_test]
void print_result(const attest_kernel& kernel, const CampaignResult& result, Detail detail);

/// Prints how many of several campaigns had which outcome, with their cases, checks and findings;
/// nothing of one.  [certify/cli/tests/campaign_test]
void print_total(const std::vector<CampaignResult>& results);

/// Prints how many positions a sample drew at random; nothing for 0.
void print_sampled(std::int64_t positions);

/// The first finding only, in three lines.
void print_finding(const std::string& kernel, const Finding& finding);

/// Prints a line for each entry of known failures that did not occur, names none of the kernels or
/// does not list the finding that it occurs in, and how many do occur.
/// [certify/cli/tests/pipelines_test]
void print_known(const std::vector<KnownOutcome>& outcomes,
                 const std::vector<CampaignResult>& results);

}  // namespace attest::certify::cli
