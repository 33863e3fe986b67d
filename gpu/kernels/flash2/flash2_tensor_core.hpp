#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/flash2_tensor_core: forward as flash2, backward in two passes, on tensor cores; tensors in
/// bf16 or f16.
/// [gpu/kernels/tensor_core_test]
const EmulatedKernel& flash2_tensor_core_kernel();

}  // namespace attest::gpu
