#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

/// Forward kernels that store the score matrix.
namespace attest::gpu {

/// gpu/standard: scores, softmax of their rows, O. Rows of up to 58112 keys, in shared memory.
const EmulatedKernel& standard_kernel();

/// gpu/hybrid: scores with LSE, Q resident; O, 128 columns at a time.
const EmulatedKernel& hybrid_kernel();

/// gpu/standard_tensor_core and gpu/hybrid_tensor_core: the same on tensor cores; tensors in bf16
/// or f16. P is divided by its sum and rounded; hybrid divides by the sum of what it became.
const EmulatedKernel& standard_tensor_core_kernel();
const EmulatedKernel& hybrid_tensor_core_kernel();

}  // namespace attest::gpu
