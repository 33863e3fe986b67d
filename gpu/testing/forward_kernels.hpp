#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu::testing {

/// The kernels with a forward, one of those that share it.
const std::vector<const EmulatedKernel*>& forward_kernels();

}  // namespace attest::gpu::testing
