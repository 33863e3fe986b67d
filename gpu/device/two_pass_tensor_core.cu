#include "gpu/device/call.cuh"
#include "gpu/kernels/two_pass_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status two_pass_tensor_core_backward(const attest_backward_args& args, TrafficSink sink) {
  const auto launches = [](auto& call, const auto& launch) {
    with_tensor_tile(widest_head(call.arguments.shape), [&](auto tile) {
      two_pass_tensor_core_launches(tile, call.arguments, launch);
    });
  };
  return args.problem->dtype == ATTEST_BF16 ? launch_counted<Bf16Backward>(args, sink, launches)
                                            : launch_counted<F16Backward>(args, sink, launches);
}

}  // namespace attest::gpu::cuda
