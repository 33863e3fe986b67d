#pragma once

#include "gpu/kernels/emulated.hpp"

namespace attest::gpu {

/// The kernel gpu/square_tiled_bwd, on the CPU: forward is that of gpu/flash2. No softcap: from P
/// there is no way back through it.
const attest_kernel& square_tiled_bwd_kernel();

inline constexpr const char* kSquareTiledBwdSchedule = "square_tiled_bwd:b=32";

/// Backward with its workspace: D, then a float for each pair of each query head.
struct EmulatedSquareTiledBwd : EmulatedBackward {
  explicit EmulatedSquareTiledBwd(const attest_backward_args& args);

  simt::GlobalPointer<float> S;
};

/// One emulated backward, all six launches, with all that they found and moved.
/// [gpu/kernels/square_tiled_bwd_test]
simt::LaunchReport square_tiled_bwd_emulated(const EmulatedSquareTiledBwd& call,
                                             const simt::Emulation& emulation);

}  // namespace attest::gpu
