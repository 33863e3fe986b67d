#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/square_tiled/square_tiled_bwd.cuh"

namespace attest::gpu::cuda {

attest_status square_tiled_bwd_backward(const attest_backward_args& args, TrafficSink sink) {
  return launch_counted<FloatBackward>(args, sink, [](auto& call, const auto& launch) {
    using Mem = typename std::decay_t<decltype(call)>::Mem;
    const SquareTiledBwdArguments<Mem> arguments{call.arguments,
                                                 call.take(pairs_of(call.arguments.shape))};
    square_tiled_bwd_launches<SquareTile<32>>(arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
