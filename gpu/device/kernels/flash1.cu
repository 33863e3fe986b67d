#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/flash1/flash1.cuh"

namespace attest::gpu::cuda {

attest_status flash1_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    using Mem = typename std::decay_t<decltype(call)>::Mem;
    float *const m = call.take(call.lse_words()), *const l = call.take(call.lse_words());
    flash1_launches(call.arguments, SavedStatistics<Mem>{m, l, call.lse_strides()}, launch);
  });
}

}  // namespace attest::gpu::cuda
