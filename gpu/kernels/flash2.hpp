#pragma once

#include "gpu/kernels/emulated_kernel.hpp"
#include "gpu/kernels/fast_memory.hpp"

namespace attest::gpu {

/// gpu/flash2: forward as flash2, backward in two passes.
const EmulatedKernel& flash2_kernel();

/// gpu/flash2_16bit, forward alone: Q, K, V and O are bf16 or f16, P and all sums float32.
const EmulatedKernel& flash2_16bit_kernel();

/// One emulated forward of float32 with all that it found and moved.
///
/// Requires: head_dim_v at most 576, shared memory that fits. Else the report says what does not.
/// [gpu/kernels/forward_test]
simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation);

/// What a block of the forward has on a device, float32.
///
/// Requires: head_dim_v at most 576.  [gpu/kernels/forward_test "fast memory"]
FastMemory flash2_fast_memory(const AttentionShape& shape);

}  // namespace attest::gpu
