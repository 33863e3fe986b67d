#include "gpu/device/kernels/split_kv_parts.cuh"

namespace attest::gpu::cuda {

attest_status split_kv_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    split_kv_launches(call.arguments, take_parts(call), launch);
  });
}

}  // namespace attest::gpu::cuda
