#pragma once

#include <string>

#include "core/abi/attest_kernel.h"

namespace attest::certify::worker {

/// Returns "" when the description's limits make sense; else the field, the value got and the
/// remedy: struct size, unknown bits, extents that hold nothing, claims that the limits rule out,
/// directions of which no problem is left. The rest of the description must have been found good.
/// [certify/worker/library/limits_test "limits that"]
std::string limits_objection(const attest_description& description);

}  // namespace attest::certify::worker
