#include "gpu/device/kernels/call.cuh"
#include "gpu/kernels/key_stationary/key_stationary_tensor_core.cuh"

namespace attest::gpu::cuda {

attest_status key_stationary_tensor_core_backward(const attest_backward_args& args,
                                                  TrafficSink sink) {
  const std::int64_t sums =
      args.dO->shape[0] * args.dO->shape[1] * args.dO->shape[2] * args.problem->head_dim_qk;
  return launch_sixteen_bit(args, sink, [sums](auto& call, const auto& launch) {
    using Call = std::decay_t<decltype(call)>;
    const KeyStationarySums<typename Call::Mem, typename Call::Element> arguments{call.arguments,
                                                                                  call.take(sums)};
    with_tensor_tile(widest_head(call.arguments.shape), [&](auto tile) {
      key_stationary_tensor_core_launches(tile, arguments, launch);
    });
  });
}

}  // namespace attest::gpu::cuda
