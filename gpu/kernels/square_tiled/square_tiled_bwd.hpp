#pragma once

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/square_tiled_bwd, and the same with tiles of 16, 64 and 128: forward is that of gpu/flash2.
/// No softcap: from P there is no way back through it. The workspace is D and a float for each pair
/// of each query head.  [gpu/kernels/square_tiled/square_tiled_bwd_test]
template <int kSide>
const EmulatedKernel& square_tiled_bwd_side_kernel();

const EmulatedKernel& square_tiled_bwd_kernel();

/// gpu/square_tiled_bwd_tensor_core: the same with tiles of 32 on tensor cores; forward is that of
/// gpu/flash2_tensor_core.
const EmulatedKernel& square_tiled_bwd_tensor_core_kernel();

/// square_tiled_bwd:b=32
std::string square_tiled_bwd_schedule(int side = 32);

}  // namespace attest::gpu
