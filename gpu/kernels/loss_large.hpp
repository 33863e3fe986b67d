#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/loss_large.
const EmulatedKernel& loss_large_kernel();

/// One emulated gradient, all launches, with all that they found and moved.
///
/// Requires: shared memory for a square matrix of the head dimension, at most 211. Else the report
///           says that it does not fit.  [gpu/kernels/loss_test]
simt::LaunchReport loss_large_emulated(const EmulatedLoss& call, const simt::Emulation& emulation);

}  // namespace attest::gpu
