#pragma once

#include <map>
#include <string>
#include <vector>

#include "certify/campaign/batches.hpp"

namespace attest::certify {

/// Returns by kernel the checks that failed in an earlier campaign, as its journal says. Builds and
/// options may be others: positions are then a hint, laws still tell. Kernels are found in other
/// folders too (certify/report/kernel_names.hpp). Throws InvalidProblem for a file that cannot be
/// read and for one that is no journal.  [certify/history/failed_checks_test]
std::map<std::string, FailedChecks> failed_checks(const std::string& journal,
                                                  const std::vector<std::string>& kernels);

}  // namespace attest::certify
