// In place of the rest of this folder where there is no CUDA toolkit.
#include "core/error.hpp"
#include "gpu/device/device_kernels.hpp"
#include "gpu/device/finding.hpp"
#include "gpu/device/probe.hpp"

namespace attest::gpu::cuda {

const Device& device() {
  static const Device none{"", "this program was built without CUDA (preset cuda)"};
  return none;
}

std::optional<Finding> take_finding() { return std::nullopt; }

const attest_kernel& staged(const attest_kernel&) {
  throw InvalidProblem("needs a CUDA device: " + device().absent_because);
}

const attest_kernel& on_device(const EmulatedKernel&) { return staged({}); }

}  // namespace attest::gpu::cuda
