#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/split_kv, forward alone: four parts, merged all at once.
const EmulatedKernel& split_kv_kernel();

}  // namespace attest::gpu
