#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/square_tiled/square_tensor_tile.cuh"
#include "gpu/kernels/square_tiled/square_tiled_bwd.cuh"

namespace attest::gpu::cuda {

attest_status square_tiled_bwd_tensor_core_backward(const attest_backward_args& args,
                                                    TrafficSink sink) {
  return launch_sixteen_bit(args, sink, [](auto& call, const auto& launch) {
    using Call = std::decay_t<decltype(call)>;
    using T = typename Call::Element;
    float* const S = call.take(pairs_of(call.arguments.shape));
    square_tiled_bwd_launches<SquareTensorTile<32, T>>(
        SquareTiledBwdArguments<typename Call::Mem, T>{call.arguments, S}, launch);
  });
}

}  // namespace attest::gpu::cuda
