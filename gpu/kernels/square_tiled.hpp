#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/square_tiled, and the same with tiles of 16, 64 and 128: scores with LSE, then O, whatever
/// the head dimensions.  [gpu/kernels/forward_test]
template <int kSide = 32>
const EmulatedKernel& square_tiled_kernel();

}  // namespace attest::gpu
