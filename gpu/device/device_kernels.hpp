#pragma once

#include "core/abi/attest_kernel.h"

/// Kernels on the CUDA device, where there is one. Else each throws InvalidProblem, "needs a CUDA
/// device" and why there is none.  [gpu/device/absent_test]
namespace attest::gpu {
class EmulatedKernel;
}

namespace attest::gpu::cuda {

/// The same kernel on the device, gpu/<name>@device, without counters.
const attest_kernel& on_device(const EmulatedKernel& kernel);

/// A kernel that takes its tensors on a device, as one that takes them on the host (StagedKernel).
/// Both last as long as the program.
const attest_kernel& staged(const attest_kernel& kernel);

}  // namespace attest::gpu::cuda
