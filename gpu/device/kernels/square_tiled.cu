#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/square_tiled/square_tiled.cuh"

namespace attest::gpu::cuda {

attest_status square_tiled_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    using Mem = typename std::decay_t<decltype(call)>::Mem;
    float* const S = call.take(pairs_of(call.arguments.shape));
    call.require_LSE();
    square_tiled_launches<SquareTile<32>>(SquareTiledArguments<Mem>{call.arguments, S}, launch);
  });
}

}  // namespace attest::gpu::cuda
