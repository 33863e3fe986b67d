#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/key_stationary/key_stationary.cuh"

namespace attest::gpu::cuda {

attest_status key_stationary_backward(const attest_backward_args& args, TrafficSink sink) {
  return launch_counted<FloatBackward>(args, sink, [](auto& call, const auto& launch) {
    key_stationary_prepare_launch(call.arguments, launch);
    key_stationary_keys_launch(call.arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
