#include "gpu/device/device_kernels.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "core/error.hpp"
#include "gpu/device/device_side.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/device/staged_kernel.hpp"

namespace attest::gpu::cuda {

const attest_kernel& staged(const attest_kernel& kernel) {
  static std::mutex mutex;
  static std::vector<std::unique_ptr<StagedKernel>> all;
  if (!device().present()) {
    throw InvalidProblem("needs a CUDA device: " + device().absent_because);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  return all.emplace_back(std::make_unique<StagedKernel>(kernel, device().name))->kernel();
}

const attest_kernel& on_device(const EmulatedKernel& kernel) {
  struct OnDevice {
    explicit OnDevice(const EmulatedKernel& of) : side(of), host_tensors(staged(side.abi())) {}
    DeviceSide side;
    const attest_kernel& host_tensors;
  };
  static std::mutex mutex;
  static std::map<const EmulatedKernel*, OnDevice> all;
  const std::lock_guard<std::mutex> lock(mutex);
  return all.try_emplace(&kernel, kernel).first->second.host_tensors;
}

}  // namespace attest::gpu::cuda
