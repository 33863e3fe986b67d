#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

/// Forward kernels that store the score matrix.
namespace attest::gpu {

/// gpu/standard: scores, softmax of their rows, O. Rows of up to 58112 keys, in shared memory.
const EmulatedKernel& standard_kernel();

/// gpu/square_tiled: scores with LSE, O; 32 x 32 tiles whatever the head dimensions.
const EmulatedKernel& square_tiled_kernel();

/// gpu/hybrid: the same with Q resident for the scores and 128 columns of O.
const EmulatedKernel& hybrid_kernel();

}  // namespace attest::gpu
