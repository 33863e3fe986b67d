#pragma once

#include <string>

#include "core/abi/attest_kernel.h"
#include "gpu/simt/memory/global_memory.hpp"

/// Kernels on the device with the traffic policy on.
namespace attest::gpu {
class EmulatedKernel;
}

namespace attest::gpu::cuda {

/// The emulated kernel "gpu/NAME", each of which has a device side. Throws InvalidProblem for an
/// unknown name.
const EmulatedKernel& kernel_named(const std::string& name);

/// Bytes that all blocks of the device side of "gpu/NAME" read and wrote, of all tensors; outputs
/// are written to the host's tensors. Throws DeviceError; InvalidProblem for an unknown name and
/// for what no launch takes. [gpu/device/device_test "device counts equal emulated counts"]
simt::GlobalTraffic counted(const std::string& kernel, const attest_forward_args& args);
simt::GlobalTraffic counted(const std::string& kernel, const attest_backward_args& args);
simt::GlobalTraffic counted(const std::string& kernel, const attest_loss_args& args);

}  // namespace attest::gpu::cuda
