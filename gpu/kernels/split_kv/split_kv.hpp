#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/split_kv, forward alone: four parts, merged all at once.
const EmulatedKernel& split_kv_kernel();

/// gpu/split_kv_tensor_core: the same on tensor cores; tensors in bf16 or f16, parts in float32.
const EmulatedKernel& split_kv_tensor_core_kernel();

}  // namespace attest::gpu
