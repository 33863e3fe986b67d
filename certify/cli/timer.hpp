#pragma once

#include <string>
#include <vector>

#include "certify/bench/timing/kernel_times.hpp"
#include "certify/campaign/campaign.hpp"

namespace attest::certify::cli {

/// Why a kernel has no times.
struct Refusal {
  CampaignResult result;
  std::string why, details;  // details: of this problem; else the campaign's report says more
};

/// Times of the kernels that have some, and why the others have none.
struct Times {
  std::vector<KernelTime> rows;
  std::vector<Refusal> refused;
  bool interrupted = false;
};

/// Times kernels in one direction, in a process of their own. A kernel that ends it or hangs is
/// refused, and the others are timed once more without it; so is one that was wrong, changed the
/// clock, or is faster than the machine can multiply.  [certify/cli/commands/bench_test]
Times times_of(std::vector<const attest_kernel*> kernels, const BenchSetting& setting,
               Direction direction, double timeout_seconds);

}  // namespace attest::certify::cli
