#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/flash2/flash2_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status flash2_tensor_core_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    flash2_tensor_core_launches(call.arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
