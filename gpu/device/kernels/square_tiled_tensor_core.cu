#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/square_tiled/square_tensor_tile.cuh"
#include "gpu/kernels/square_tiled/square_tiled.cuh"

namespace attest::gpu::cuda {

attest_status square_tiled_tensor_core_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    using Call = std::decay_t<decltype(call)>;
    using T = typename Call::Element;
    float* const S = call.take(pairs_of(call.arguments.shape));
    call.require_LSE();
    square_tiled_launches<SquareTensorTile<32, T>>(
        SquareTiledArguments<typename Call::Mem, T>{call.arguments, S}, launch);
  });
}

}  // namespace attest::gpu::cuda
