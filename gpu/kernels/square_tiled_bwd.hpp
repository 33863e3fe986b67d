#pragma once

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/square_tiled_bwd: forward is that of gpu/flash2. No softcap: from P
/// there is no way back through it.
const EmulatedKernel& square_tiled_bwd_kernel();

inline constexpr const char* kSquareTiledBwdSchedule = "square_tiled_bwd:b=32";

/// One emulated backward, all six launches, with all that they found and moved. The workspace is D
/// and a float for each pair of each query head.
/// [gpu/kernels/square_tiled_bwd_test]
simt::LaunchReport square_tiled_bwd_emulated(EmulatedBackward& call,
                                             const simt::Emulation& emulation);

}  // namespace attest::gpu
