#include "gpu/device/launch.cuh"
#include "gpu/device/pointers.cuh"
#include "gpu/kernels/flash2.cuh"

namespace attest::gpu::cuda {
namespace {

template <int kColumns, class Mem>
attest_status run(const attest_forward_args& args, TrafficSink sink) {
  const ForwardArguments<Mem> arguments = arguments_of<Mem>(args, sink);
  const AttentionShape& shape = arguments.shape;
  const LaunchShape grid{
      blocks_for(shape.seqlen_q, Flash2::kBlockQ, shape.num_heads_q, shape.batch), Flash2::kLanes,
      Flash2::shared_floats(shape.head_dim_qk, shape.head_dim_v) *
          static_cast<std::int64_t>(sizeof(float))};
  constexpr auto kKernel = gpu::flash2_forward<kColumns, Mem>;
  if (!fits(kKernel, grid)) return ATTEST_UNSUPPORTED;
  launch("flash2", kKernel, grid, static_cast<cudaStream_t>(args.stream), arguments);
  return ATTEST_OK;
}

template <class Mem>
attest_status run(const attest_forward_args& args, TrafficSink sink) {
  const std::int64_t head_dim_v = args.problem->head_dim_v;
  if (head_dim_v <= 32) return run<1, Mem>(args, sink);
  if (head_dim_v <= 64) return run<2, Mem>(args, sink);
  if (head_dim_v <= 128) return run<4, Mem>(args, sink);
  if (head_dim_v <= 256) return run<8, Mem>(args, sink);
  if (head_dim_v <= 576) return run<18, Mem>(args, sink);
  return ATTEST_UNSUPPORTED;
}

}  // namespace

attest_status flash2_forward(const attest_forward_args& args, TrafficSink sink) {
  constexpr std::int64_t kMostColumns = 576;
  const attest_problem& problem = *args.problem;
  if (problem.dtype != ATTEST_F32 || problem.head_dim_qk > kMostColumns) return ATTEST_UNSUPPORTED;
  return sink == nullptr ? run<simt::Uncounted>(args, sink) : run<simt::Counted>(args, sink);
}

}  // namespace attest::gpu::cuda
