#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"

/// Which problems a kernel may be asked.
namespace attest::proptest {

enum class Direction : std::uint8_t { forward, backward, loss_gradient };

/// Returns "forward", "backward" or "loss gradient".
std::string_view name(Direction direction);

/// Names what no kernel on a device is asked for: the gaps of a tensor travel to the device too.
/// [proptest/values/generator_test "huge strides"]
inline constexpr const char* kHugeOnDevice = "huge strides on a device";

/// Returns "" for a problem that the description claims in the direction; else the first feature
/// that is missing or the first limit that leaves the problem out. Costs a pass over the queries,
/// and over the pairs of a mask, where the kernel claims no ATTEST_EMPTY_ROWS.
/// [certify/campaign/claims_test "nothing outside"]
std::string unclaimed(const attest_description& description, const Problem& problem,
                      Direction direction);

/// Returns a claimed problem of 16 queries and keys without a mask, or the nearest that the limits
/// allow; nothing where they leave none.  [certify/worker/limits_test "limits that"]
std::optional<Problem> plainest_problem(const attest_description& description, Direction direction);

}  // namespace attest::proptest
