#include "gpu/device/kernels/split_kv_parts.cuh"
#include "gpu/kernels/split_kv/split_kv_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status split_kv_tensor_core_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    split_kv_tensor_core_launches(call.arguments, take_parts(call), launch);
  });
}

}  // namespace attest::gpu::cuda
