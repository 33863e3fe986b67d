#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/flash2: forward as flash2 with tiles of so many queries and keys, backward in two passes of
/// tiles with so many resident rows. The same with smaller tiles, which is not registered: 4, 4, 8;
/// 8, 8, 8 and 16, 16, 16.  [gpu/kernels/capped_test]
template <int kBlockQ = 32, int kBlockK = 32, int kResident = 32>
const EmulatedKernel& flash2_kernel();

/// gpu/flash2_16bit, forward alone: Q, K, V and O are bf16 or f16, P and all sums float32.
const EmulatedKernel& flash2_16bit_kernel();

/// One emulated forward of float32 with all that it found and moved.
///
/// Requires: head_dim_v at most 576, shared memory that fits. Else the report says what does not.
/// [gpu/kernels/forward_test]
simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation);

}  // namespace attest::gpu
