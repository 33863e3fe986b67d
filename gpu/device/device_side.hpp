#pragma once

#include <string>

#include "gpu/device/kernels.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"

/// Emulated kernels and what is launched for them on a device.
namespace attest::gpu::cuda {

/// As a kernel of the ABI that takes its tensors on the device: what it claims, accepts and needs
/// of workspace is what the emulated kernel does.
class DeviceSide {
 public:
  /// Throws InternalError when nothing is launched for the kernel.
  /// [gpu/device/device_side_test]
  explicit DeviceSide(const EmulatedKernel& kernel, TrafficSink sink = nullptr);
  DeviceSide(const DeviceSide&) = delete;
  DeviceSide& operator=(const DeviceSide&) = delete;

  const attest_kernel& abi() const { return abi_; }
  const EmulatedKernel& emulated() const { return *launches_->kernel; }

  struct Launches {
    const EmulatedKernel* kernel;
    ForwardOnDevice* forward;
    BackwardOnDevice* backward;
    LossOnDevice* loss_gradient;
  };

 private:
  static attest_status forward(const void* self, const attest_forward_args* args);
  static attest_status backward(const void* self, const attest_backward_args* args);
  static attest_status loss_gradient(const void* self, const attest_loss_args* args);

  const Launches* launches_;
  TrafficSink sink_;
  std::string name_, summary_;
  attest_kernel abi_{};
};

}  // namespace attest::gpu::cuda
