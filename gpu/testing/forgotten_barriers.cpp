#include "gpu/testing/forgotten_barriers.hpp"

#include "gpu/kernels/tile.cuh"

#define __syncthreads() static_cast<void>(0)  // NOLINT(bugprone-reserved-identifier): forgotten
#include "gpu/kernels/backward_launch.hpp"
#include "gpu/kernels/key_stationary.cuh"

namespace attest::gpu::testing {
namespace {

// A type of its own: what is made of it is not mistaken for the kernels that have their barriers.
struct Forgetful : BackwardTile<1, 1, 32> {};

}  // namespace

simt::LaunchReport key_stationary_without_barriers(const EmulatedBackward& call,
                                                   const simt::Emulation& emulation) {
  return launch_line(key_line(Forgetful{}, call.arguments.shape), emulation, call.memory,
                     key_stationary_keys<Forgetful, simt::Counted>, call.arguments);
}

}  // namespace attest::gpu::testing
