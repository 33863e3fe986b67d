#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/two_pass/two_pass.cuh"

namespace attest::gpu::cuda {

attest_status two_pass_backward(const attest_backward_args& args, TrafficSink sink) {
  return launch_counted<FloatBackward>(args, sink, [](auto& call, const auto& launch) {
    two_pass_launches(call.arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
