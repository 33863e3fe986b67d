#pragma once

#include "core/abi/attest_kernel.h"
#include "gpu/simt/global_memory.hpp"

/// Kernels on the device with the traffic policy on.
namespace attest::gpu::cuda {

/// Bytes that all blocks read and wrote, of all tensors; outputs are written to the host's tensors.
/// Throws DeviceError; InvalidProblem for what no launch takes.
/// [gpu/device/device_test "device counts equal emulated counts"]
simt::GlobalTraffic counted_forward(const attest_forward_args& args);
simt::GlobalTraffic counted_backward(const attest_backward_args& args);

}  // namespace attest::gpu::cuda
