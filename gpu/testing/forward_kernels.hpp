#pragma once

#include <string>
#include <vector>

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu::testing {

/// The kernels with a forward, one of those that share it.
const std::vector<const EmulatedKernel*>& forward_kernels();

/// The problems whose head dimensions and masks the kernel's forward takes.
/// [gpu/kernels/forward_test "wider heads and masks that a kernel does not take are refused"]
std::vector<const char*> taken(const EmulatedKernel& kernel, const std::vector<const char*>& all);

/// The same in each type of spellings_for().
std::vector<std::string> spellings_taken(const EmulatedKernel& kernel,
                                         const std::vector<const char*>& all);

}  // namespace attest::gpu::testing
