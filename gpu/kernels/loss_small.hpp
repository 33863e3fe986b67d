#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/loss_small.
const EmulatedKernel& loss_small_kernel();

/// One emulated gradient, all launches, with all that they found and moved.
///
/// The workspace is loss_words() and S.  [gpu/kernels/loss_test]
simt::LaunchReport loss_small_emulated(EmulatedLoss& call, const simt::Emulation& emulation);

}  // namespace attest::gpu
