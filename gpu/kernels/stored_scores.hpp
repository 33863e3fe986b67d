#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

/// Forward kernels that store the score matrix.
namespace attest::gpu {

/// gpu/standard: scores, softmax of their rows, O. Rows of up to 58112 keys, in shared memory.
const EmulatedKernel& standard_kernel();

/// gpu/hybrid: scores with LSE, Q resident; O, 128 columns at a time.
const EmulatedKernel& hybrid_kernel();

}  // namespace attest::gpu
