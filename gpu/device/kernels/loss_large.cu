#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/loss/loss_large.cuh"

namespace attest::gpu::cuda {

attest_status loss_large_gradient(const attest_loss_args& args, TrafficSink sink) {
  return launch_counted<DeviceLoss>(args, sink, [](auto& call, const auto& launch) {
    loss_large_launches<32>(call.arguments, launch);
  });
}

}  // namespace attest::gpu::cuda
