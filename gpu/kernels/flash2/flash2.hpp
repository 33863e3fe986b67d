#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/flash2: forward as flash2 with tiles of 32 queries and keys, backward in two passes of tiles
/// with 32 resident rows.
const EmulatedKernel& flash2_kernel();

/// The same with 4, 8, 16, 32 or 64 queries or resident rows, in 128 registers a lane; not
/// registered.  [gpu/kernels/capped_test]
template <int kRows>
const EmulatedKernel& flash2_held_kernel();

/// gpu/flash2_nonfinite, forward alone: NaN and infinities reach the rows that see their key, and
/// no other.  [proptest/suites/emulated_suite_test "NaN"]
const EmulatedKernel& flash2_nonfinite_kernel();

/// gpu/flash2_16bit, forward alone: Q, K, V and O are bf16 or f16, P and all sums float32.
const EmulatedKernel& flash2_16bit_kernel();

/// One emulated forward of float32 with all that it found and moved.
///
/// Requires: head_dim_v at most 576, shared memory that fits. Else the report says what does not.
/// [gpu/kernels/forward_test]
simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation);

}  // namespace attest::gpu
