#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/key_stationary: forward is that of gpu/flash2.
const EmulatedKernel& key_stationary_kernel();

/// The launches without making them. Requires head dimensions of at most 576.
LaunchPlan key_stationary_plan(const AttentionShape& shape);

/// Tells whether shared memory suffices for these head dimensions, and a grid for the blocks.
bool key_stationary_fits(const AttentionShape& shape, const simt::Emulation& emulation);

/// The schedule of a launch, key_stationary:bq=…,bk=32.
std::string key_stationary_schedule(const AttentionShape& shape);

/// D and zeros in dQ: the first of the two launches.
simt::LaunchReport key_stationary_prepare_emulated(const EmulatedBackward& call,
                                                   const simt::Emulation& emulation);
/// dK and dV, and additions to dQ.
simt::LaunchReport key_stationary_keys_emulated(const EmulatedBackward& call,
                                                const simt::Emulation& emulation);

/// One emulated backward, both launches, with all that they found and moved.
///
/// Requires: key_stationary_fits(). Else the report says what does not.
///           [gpu/kernels/key_stationary/key_stationary_test]
simt::LaunchReport key_stationary_emulated(const EmulatedBackward& call,
                                           const simt::Emulation& emulation);

}  // namespace attest::gpu
