#pragma once

#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::schedules {

/// Every schedule of this room but those of N:M patterns as a kernel `sparse/schedule/<name>`
/// (schedules/engine/schedule_kernel.hpp). They take any boolean mask and make their lists of it in
/// every call; the index words that these cost are counted. Not so the schedules of N:M: a kernel
/// cannot claim one form of a mask and be given another.
/// [proptest/suites/schedules_suite_test]
const std::vector<const attest_kernel*>& list_schedule_kernels();

}  // namespace attest::schedules
