#pragma once

#include <string>
#include <vector>

#include "gpu/kernels/emulated/fast_memory.hpp"

namespace attest::gpu::cuda {

/// Report of `nvcc -Xptxas -v` on a kernel for one architecture.
struct ResourceUsage {
  std::string kernel;        // without its policy: "flash2_forward<4, float>"
  std::string policy;        // "Uncounted"
  std::string architecture;  // "sm_90a"
  ThreadMemory thread;       // local_bytes: the stack frame, in which spills lie too
  int static_shared_bytes = 0;
};

/// Kernels with a traffic policy among their template arguments, in the order of the text.
/// [gpu/device/measure/resource_usage_test "a report is read"]
std::vector<ResourceUsage> parse_ptxas(const std::string& text);

/// Returns what is declared of a kernel, for comparison.
using Declaration = ThreadMemory (*)(std::string_view kernel);

/// Where kernels without counters differ from what is declared, a line each: the most registers
/// over the architectures, rounded up to the device's units of 8, and the most local bytes.
/// [gpu/device/measure/resource_usage_test "differences have a line each"]
std::vector<std::string> differences(const std::vector<ResourceUsage>& kernels,
                                     Declaration declared);

}  // namespace attest::gpu::cuda
