#include "gpu/device/call.cuh"
#include "gpu/kernels/flash2_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status flash2_tensor_core_forward(const attest_forward_args& args, TrafficSink sink) {
  const auto launches = [](auto& call, const auto& launch) {
    flash2_tensor_core_launches(call.arguments, launch);
  };
  return args.problem->dtype == ATTEST_BF16 ? launch_counted<Bf16Forward>(args, sink, launches)
                                            : launch_counted<F16Forward>(args, sink, launches);
}

}  // namespace attest::gpu::cuda
