#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/stored_scores/stored_scores.cuh"

namespace attest::gpu::cuda {

attest_status standard_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    using Mem = typename std::decay_t<decltype(call)>::Mem;
    const ScoreMatrix<Mem> scores{call.take(pairs_of(call.arguments.shape))};
    standard_launches(call.arguments, scores, launch);
  });
}

attest_status hybrid_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    using Mem = typename std::decay_t<decltype(call)>::Mem;
    const ScoreMatrix<Mem> scores{call.take(pairs_of(call.arguments.shape))};
    call.require_LSE();
    hybrid_launches(call.arguments, scores, launch);
  });
}

}  // namespace attest::gpu::cuda
