#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/loss_small, and the same with tiles of 16, 64 and 128.  [gpu/kernels/loss/loss_test]
template <int kSide>
const EmulatedKernel& loss_small_side_kernel();

const EmulatedKernel& loss_small_kernel();

}  // namespace attest::gpu
