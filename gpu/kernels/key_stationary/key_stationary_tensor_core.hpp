#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/key_stationary_tensor_core: forward is that of gpu/flash2_tensor_core; tensors in bf16 or
/// f16. The workspace is D and a float for each word of dQ.
/// [gpu/kernels/key_stationary/key_stationary_tensor_core_test]
const EmulatedKernel& key_stationary_tensor_core_kernel();

}  // namespace attest::gpu
