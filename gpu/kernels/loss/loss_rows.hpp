#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// The loss gradient with blocks of 8, 16 or 32 rows and square tiles of 16, 16 and 32, in 128
/// registers a lane; not registered.  [gpu/kernels/capped_test]
template <int kRows>
const EmulatedKernel& loss_rows_held_kernel();

}  // namespace attest::gpu
