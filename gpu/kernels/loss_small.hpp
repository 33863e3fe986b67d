#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/loss_small, and the same with tiles of 16 and 64.  [gpu/kernels/loss_test]
template <int kSide = 32>
const EmulatedKernel& loss_small_kernel();

}  // namespace attest::gpu
