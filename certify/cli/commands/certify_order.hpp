#pragma once

#include <map>
#include <string>
#include <vector>

#include "certify/campaign/campaign.hpp"
#include "certify/cli/commands/certify_options.hpp"
#include "certify/cli/kernels.hpp"
#include "certify/history/failed_checks.hpp"
#include "certify/history/known_failures.hpp"
#include "core/registry.hpp"

namespace attest::certify::cli {

/// Subject of a certification: kernels, options, and what is known of earlier runs or other shards.
struct Order {
  CampaignOptions campaign;
  std::vector<const attest_kernel*> kernels;
  std::vector<std::string> libraries;  // what theirs held before a journal or certificate said so
  Journal journal;
  std::map<std::string, double> seconds;      // that the shards took
  std::map<std::string, FailedChecks> first;  // checks that failed before, by kernel
};

/// Loads the kernels that the options name, or those of the shards that they merge, with the
/// campaign and its journal. Throws InvalidProblem for what cannot be certified so, and where one
/// of the files in the options is that of a kernel's code.
void load_order(const Registry& registry, const CertifyOptions& options, Kernels& known,
                Order& order);

/// Refuses what is wrong with the options and files before the work, not after it. Returns the
/// failures that are expected.
std::vector<KnownFailure> require_options(const CertifyOptions& options);

/// Returns the names of kernels.
std::vector<std::string> names_of(const std::vector<const attest_kernel*>& kernels);

}  // namespace attest::certify::cli
