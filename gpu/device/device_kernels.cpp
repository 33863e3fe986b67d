#include "gpu/device/device_kernels.hpp"

#include <memory>
#include <mutex>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/kernels.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/device/staged_kernel.hpp"
#include "gpu/kernels/flash2.hpp"

namespace attest::gpu::cuda {
namespace {

attest_kernel flash2_on_device_tensors() {
  attest_kernel kernel = flash2_kernel().abi();
  kernel.description.name = "gpu/flash2@device";
  kernel.description.summary = "online softmax; backward in two passes";
  kernel.description.device = ATTEST_CUDA;
  kernel.forward = [](const void*, const attest_forward_args* args) {
    return flash2_forward(*args, nullptr);
  };
  kernel.backward = [](const void*, const attest_backward_args* args) {
    return two_pass_backward(*args, nullptr);
  };
  return kernel;
}

}  // namespace

const attest_kernel& staged(const attest_kernel& kernel) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<StagedKernel>> all;
  if (!device().present()) {
    throw InvalidProblem("needs a CUDA device: " + device().absent_because);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  return all.emplace_back(std::make_unique<StagedKernel>(kernel, device().name))->kernel();
}

const attest_kernel& flash2_on_device() {
  static const attest_kernel on_device_tensors = flash2_on_device_tensors();
  static const attest_kernel& kernel = staged(on_device_tensors);
  return kernel;
}

}  // namespace attest::gpu::cuda
