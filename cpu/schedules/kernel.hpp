#pragma once

#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::cpu {

/// Every schedule of this room as a kernel `cpu/schedule/<name>`: the native
/// machine on num_threads threads, with the tiles that its family chooses for the first-level data
/// cache of this machine (description.fast_memory_bytes). The word count of the schedule with that
/// capacity is the count of what runs. A problem that does not fit is refused with
/// ATTEST_UNSUPPORTED.
///
/// A backward schedule reads O and LSE as flash2 writes them: its forward call is that of
/// cpu/schedule/flash2, and the schedule it names is that of its backward call. Only f32 is claimed
/// where a result that is still being added to goes through slow memory (flash1, flash1_bwd,
/// key_stationary). [proptest/schedules_suite_test]
const std::vector<const attest_kernel*>& schedule_kernels();

}  // namespace attest::cpu
