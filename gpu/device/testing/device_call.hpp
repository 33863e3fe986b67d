#pragma once

#include <memory>
#include <string>

#include "gpu/device/staging.hpp"
#include "gpu/testing/call.hpp"

namespace attest::gpu::cuda {

class DeviceSide;

/// One problem whose tensors stay on the device, to be run many times.
class DeviceCall {
 public:
  explicit DeviceCall(const std::string& problem);
  ~DeviceCall();

  /// Puts the kernels on the default stream. Throws InvalidProblem when no launch takes the
  /// problem.
  void forward();
  void backward();  // after forward

  /// Multiplications and additions of the products of visible pairs, none done twice.
  double forward_operations() const;
  double backward_operations() const;

 private:
  std::unique_ptr<const DeviceSide> side_;
  gpu::testing::Call call_;
  Staging staging_;
  attest_forward_args forward_;
  attest_backward_args backward_;
};

}  // namespace attest::gpu::cuda
