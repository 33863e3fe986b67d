#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/flash2/flash2.cuh"

namespace attest::gpu::cuda {

attest_status flash2_nonfinite_forward(const attest_forward_args& args, TrafficSink sink) {
  return launch_counted<FloatForward>(args, sink, [](auto& call, const auto& launch) {
    flash2_launches<SeenAlone<Flash2>>(call.arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
