#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/loss/loss_small.cuh"

namespace attest::gpu::cuda {

attest_status loss_small_gradient(const attest_loss_args& args, TrafficSink sink) {
  return launch_counted<DeviceLoss>(args, sink, [](auto& call, const auto& launch) {
    auto& a = call.arguments;
    a.S = call.matrix(a.n, a.n);
    loss_small_launches<SquareTile<32>>(a, launch);
  });
}

}  // namespace attest::gpu::cuda
