#pragma once

#include "gpu/kernels/emulated.hpp"
#include "gpu/kernels/fast_memory.hpp"

namespace attest::gpu {

/// The kernel gpu/flash2, on the CPU: each call is an emulated launch.
const attest_kernel& flash2_kernel();

/// One emulated forward with all that it found and moved.
///
/// Requires: head_dim_v at most 576, shared memory that fits. Else the report says what does not.
/// [gpu/kernels/flash2_test]
simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation);

/// The fast memory that one of its blocks has: the M of its lower bounds. Requires head_dim_v at
/// most 576, else throws InvalidProblem.  [gpu/kernels/flash2_test "fast memory"]
FastMemory flash2_fast_memory(const AttentionShape& shape);

}  // namespace attest::gpu
