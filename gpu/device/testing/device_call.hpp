#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gpu/device/staging.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu {
class EmulatedKernel;
}

namespace attest::gpu::cuda {

class DeviceSide;

/// One problem whose tensors stay on the device, to be run many times by one kernel. For a loss
/// gradient, the problem's seqlen_q and head_dim_qk count.
class DeviceCall {
 public:
  /// "gpu/NAME" and a problem. Throws InvalidProblem for another name.
  DeviceCall(const std::string& kernel, const std::string& problem);
  ~DeviceCall();

  /// ATTEST_FORWARD, …: those that the kernel has.
  std::uint32_t directions() const;

  /// Puts the kernels of one of them on the default stream; backward after forward. Throws
  /// InvalidProblem when no launch takes the problem.
  void run(std::uint32_t direction);

  /// Multiplications and additions of the products of visible pairs, none done twice. For attention
  /// alone.
  double operations(std::uint32_t direction) const;

 private:
  const attest_tensor* input(const char* name, const attest_tensor* tensor);
  const attest_tensor* output(const char* name, const attest_tensor* tensor);
  void stage_attention();
  void stage_loss();

  const EmulatedKernel& kernel_;
  std::unique_ptr<const DeviceSide> side_;
  gpu::testing::Call call_;
  gpu::testing::LossCall loss_call_;
  Staging staging_;
  attest_forward_args forward_{};
  attest_backward_args backward_{};
  attest_loss_args loss_{};
};

}  // namespace attest::gpu::cuda
