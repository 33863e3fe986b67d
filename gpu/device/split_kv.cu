#include "gpu/device/call.cuh"
#include "gpu/kernels/split_kv.cuh"

namespace attest::gpu::cuda {

attest_status split_kv_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    using Mem = typename std::decay_t<decltype(call)>::Mem;
    float* const O = call.take(SplitKv::kSplits * call.o_words());
    float* const LSE = call.take(SplitKv::kSplits * call.lse_words());
    split_kv_launches(call.arguments,
                      SplitParts<Mem>{O, LSE, call.o_strides(), call.lse_strides(), call.o_words(),
                                      call.lse_words()},
                      launch);
  });
}

}  // namespace attest::gpu::cuda
