#pragma once

#include <string>

#include "core/abi/attest_kernel.h"

namespace attest::certify::worker {

/// "" when the kernel's struct and description can be worked with, else the field, the value got,
/// the value needed and the remedy: ABI version, struct sizes, name, device, directions with their
/// functions, dtypes, features, head dimensions, conventions and numerics.
/// [certify/worker/library/library_test "descriptions that are nonsense"]
std::string objection(const attest_kernel& kernel);

}  // namespace attest::certify::worker
