#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/square_tiled, and the same with tiles of 16, 64 and 128: scores with LSE, then O, whatever
/// the head dimensions.  [gpu/kernels/forward_test]
template <int kSide>
const EmulatedKernel& square_tiled_side_kernel();

const EmulatedKernel& square_tiled_kernel();

/// gpu/square_tiled_tensor_core: the same with tiles of 32 on tensor cores; tensors in bf16 or f16.
/// P is divided by its sum, then rounded, then divided by the sum of what it became.
const EmulatedKernel& square_tiled_tensor_core_kernel();

}  // namespace attest::gpu
