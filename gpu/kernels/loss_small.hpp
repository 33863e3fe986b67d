#pragma once

#include "gpu/kernels/loss_call.hpp"

namespace attest::gpu {

/// The kernel gpu/loss_small, on the CPU.
const attest_kernel& loss_small_kernel();

/// One emulated gradient, all launches, with all that they found and moved.
///
/// Requires: a call with LossScores::stored.  [gpu/kernels/loss_test]
simt::LaunchReport loss_small_emulated(const EmulatedLoss& call, const simt::Emulation& emulation);

}  // namespace attest::gpu
