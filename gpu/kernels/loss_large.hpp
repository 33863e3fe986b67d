#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/loss_large, and the same with blocks of 8 and 16 rows. Shared memory holds a square matrix
/// of the head dimension, at most 211.  [gpu/kernels/loss_test]
template <int kRows = 32>
const EmulatedKernel& loss_large_kernel();

}  // namespace attest::gpu
