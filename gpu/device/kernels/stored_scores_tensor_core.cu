#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/stored_scores/stored_scores_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status standard_tensor_core_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    using Call = std::decay_t<decltype(call)>;
    using T = typename Call::Element;
    float* const S = call.take(pairs_of(call.arguments.shape));
    standard_tensor_core_launches<SquareTensorTile<32, T>>(
        SquareTiledArguments<typename Call::Mem, T>{call.arguments, S}, launch);
  });
}

attest_status hybrid_tensor_core_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    using Call = std::decay_t<decltype(call)>;
    using T = typename Call::Element;
    float* const S = call.take(pairs_of(call.arguments.shape));
    call.require_LSE();
    hybrid_tensor_core_launches<SquareTensorTile<32, T>>(
        SquareTiledArguments<typename Call::Mem, T>{call.arguments, S}, launch);
  });
}

}  // namespace attest::gpu::cuda
