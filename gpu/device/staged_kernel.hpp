#pragma once

#include <memory>
#include <string>

#include "core/abi/attest_kernel.h"
#include "gpu/device/finding.hpp"

namespace attest::gpu::cuda {

/// A kernel that takes its tensors on a CUDA device, as one that takes them on the host.
///
/// Each call copies its tensors to the device (Staging), calls the kernel on one of two streams in
/// turn, waits, and copies the outputs back. A Finding makes the call ATTEST_FAILED;
/// tensors that span too much (Staging::kMostBytes) make it ATTEST_UNSUPPORTED. The
/// description is the kernel's own, its summary begins "on device NAME: ". Calls of several threads
/// are independent.  [gpu/device/staging_test]
class StagedKernel {
 public:
  /// `inner` must outlive it. `device_name` is for the summary.
  StagedKernel(const attest_kernel& inner, const std::string& device_name);
  ~StagedKernel();
  StagedKernel(const StagedKernel&) = delete;
  StagedKernel& operator=(const StagedKernel&) = delete;

  const attest_kernel& kernel() const { return kernel_; }

  struct State;  // internal

 private:
  std::unique_ptr<State> state_;
  attest_kernel kernel_{};
};

}  // namespace attest::gpu::cuda
