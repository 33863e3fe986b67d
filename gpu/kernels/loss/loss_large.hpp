#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/loss_large. Shared memory holds a square matrix of the head dimension, at most 211.
/// [gpu/kernels/loss/loss_test]
const EmulatedKernel& loss_large_kernel();

/// The same with blocks of 8, 16 or 32 rows, in 128 registers a lane where rows are resident; not
/// registered.  [gpu/kernels/capped_test]
template <int kRows>
const EmulatedKernel& loss_large_held_kernel();

}  // namespace attest::gpu
