#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/flash1, forward alone. O is divided by its sum after every block of keys, a merge of
/// normalized results for each: more than 256 blocks are refused.
const EmulatedKernel& flash1_kernel();

}  // namespace attest::gpu
