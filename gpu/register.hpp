#pragma once

#include <string_view>

#include "core/registry.hpp"
#include "gpu/device/finding.hpp"

namespace attest {

/// Adds the CUDA kernels as the emulation runs them, gpu/<name>, and where there is a CUDA device
/// as it runs them, gpu/<name>@device. Where there is none, that name says why.
/// [gpu/device/absent_test]
void register_gpu(Registry& registry);

/// Tells whether a built-in kernel of that name is a CUDA kernel that is emulated on the host.
/// [certify/campaign/where_run_test]
bool is_emulated(std::string_view kernel);

/// A kernel that takes its tensors on a CUDA device, as one that takes them on the host; what else
/// its calls do there is gpu::cuda::take_finding(). Both last as long as the program. Throws
/// InvalidProblem, "needs a CUDA device", where there is none.  [gpu/device/absent_test]
const attest_kernel& on_host_tensors(const attest_kernel& kernel);

}  // namespace attest
