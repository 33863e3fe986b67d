#pragma once

#include "core/abi/attest_kernel.h"
#include "gpu/kernels/attention.cuh"
#include "gpu/kernels/grid.hpp"
#include "gpu/simt/launch.hpp"

/// From the ABI's arguments to those of an emulated kernel.
namespace attest::gpu {

/// Arguments with the tensors they may touch, by name: Q K V O LSE, then masks and slopes. Launches
/// refer to the memory, so it outlives them.
struct EmulatedForward {
  explicit EmulatedForward(const attest_forward_args& args);
  EmulatedForward(const EmulatedForward&) = delete;
  EmulatedForward& operator=(const EmulatedForward&) = delete;

  simt::GlobalMemory memory;
  ForwardArguments<simt::Counted> arguments;
};

/// The same for backward: Q K V O LSE dO dLSE dQ dK dV D. D is the workspace, a float for each row
/// of dO.
struct EmulatedBackward {
  explicit EmulatedBackward(const attest_backward_args& args);
  EmulatedBackward(const EmulatedBackward&) = delete;
  EmulatedBackward& operator=(const EmulatedBackward&) = delete;

  simt::GlobalMemory memory;
  BackwardArguments<simt::Counted> arguments;
};

/// What a launch moved of the tensors of that name; zeros when there is none.
simt::GlobalTraffic traffic_of(const simt::GlobalMemory& memory, const simt::LaunchReport& report,
                               const char* name);

}  // namespace attest::gpu
