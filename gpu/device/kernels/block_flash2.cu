#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/block_flash2/block_flash2.cuh"

namespace attest::gpu::cuda {

attest_status block_flash2_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    block_flash2_launches(call.arguments, launch);
  });
}

attest_status block_two_pass_backward(const attest_backward_args& args, TrafficSink sink) {
  return launch_counted<FloatBackward>(args, sink, [](auto& call, const auto& launch) {
    block_two_pass_launches(call.arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
