#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/two_pass/two_pass_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status two_pass_tensor_core_backward(const attest_backward_args& args, TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    with_tensor_tile(widest_head(call.arguments.shape), [&](auto tile) {
      two_pass_tensor_core_launches(tile, call.arguments, launch);
    });
  });
}

}  // namespace attest::gpu::cuda
