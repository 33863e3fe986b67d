#pragma once

#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::schedules {

/// Every schedule of this room as a kernel `cpu/schedule/<name>` (schedule_kernel.hpp). Only f32 is
/// claimed where a result that is still being added to goes through slow memory (flash1,
/// flash1_bwd, key_stationary).  [proptest/suites/schedules_suite_test]
const std::vector<const attest_kernel*>& dense_schedule_kernels();

}  // namespace attest::schedules
