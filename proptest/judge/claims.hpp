#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/direction.hpp"
#include "core/dtype/dtype.hpp"
#include "core/problem.hpp"

/// Which problems a kernel may be asked.
namespace attest::proptest {

/// Names what no kernel on a device is asked for: the gaps of a tensor travel to the device too.
/// [proptest/values/generator_test "huge strides"]
inline constexpr const char* kHugeOnDevice = "huge strides on a device";

/// Returns "" for a problem that the description claims in the direction; else the first feature
/// that is missing or the first limit that leaves the problem out. Costs a pass over the queries,
/// and over the pairs of a mask, where the kernel claims no ATTEST_EMPTY_ROWS.
/// [certify/campaign/claims_test "nothing outside"]
std::string unclaimed(const attest_description& description, const Problem& problem,
                      Direction direction);

/// Returns "" where each row that exists sees a key in every head; else what the problem has:
/// sequences of length zero, or rows without a visible key. Costs a pass over the queries, and over
/// the pairs of a mask.
std::string rows_without_a_key(const Problem& problem);

/// Returns a claimed problem of 16 queries and keys without a mask, or the nearest that the limits
/// allow; nothing where they leave none.  [certify/worker/library/limits_test "limits that"]
std::optional<Problem> plainest_problem(const attest_description& description, Direction direction);

/// All dtypes in the order in which campaigns take them.
inline constexpr std::array<DType, kDTypes.size()> kDTypesOfCampaigns = [] {
  std::array<DType, kDTypes.size()> all = all_dtypes();
  std::rotate(all.begin(), all.begin() + 1, all.end());  // f64, which few kernels have, is last
  return all;
}();

/// Returns the dtypes that a description claims, in that order. Throws InvalidProblem where none is
/// known here.
std::vector<DType> claimed_dtypes(const attest_description& description);

}  // namespace attest::proptest
