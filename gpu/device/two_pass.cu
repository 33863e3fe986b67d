#include <algorithm>

#include "gpu/device/launch.cuh"
#include "gpu/device/pointers.cuh"
#include "gpu/kernels/two_pass.cuh"

namespace attest::gpu::cuda {
namespace {

template <int kColumns, class Mem>
attest_status run(const attest_backward_args& args, TrafficSink sink) {
  const BackwardArguments<Mem> arguments = arguments_of<Mem>(args, sink);
  const AttentionShape& shape = arguments.shape;
  const auto grid_of = [&](std::int64_t rows, std::int64_t heads) {
    return LaunchShape{blocks_for(rows, TwoPass::kBlock, heads, shape.batch), TwoPass::kLanes,
                       TwoPass::shared_floats(shape.head_dim_qk, shape.head_dim_v) *
                           static_cast<std::int64_t>(sizeof(float))};
  };
  const LaunchShape queries = grid_of(shape.seqlen_q, shape.num_heads_q),
                    keys = grid_of(shape.seqlen_k, shape.num_heads_kv);
  constexpr auto kQueries = two_pass_queries<kColumns, Mem>;
  constexpr auto kKeys = two_pass_keys<kColumns, Mem>;
  if (!fits(kQueries, queries) || !fits(kKeys, keys)) return ATTEST_UNSUPPORTED;
  const auto stream = static_cast<cudaStream_t>(args.stream);
  launch("two_pass: queries", kQueries, queries, stream, arguments);
  launch("two_pass: keys", kKeys, keys, stream, arguments);
  return ATTEST_OK;
}

template <class Mem>
attest_status run(const attest_backward_args& args, TrafficSink sink) {
  const std::int64_t columns = std::max(args.problem->head_dim_qk, args.problem->head_dim_v);
  if (columns <= 32) return run<1, Mem>(args, sink);
  if (columns <= 64) return run<2, Mem>(args, sink);
  if (columns <= 128) return run<4, Mem>(args, sink);
  if (columns <= 256) return run<8, Mem>(args, sink);
  if (columns <= 576) return run<18, Mem>(args, sink);
  return ATTEST_UNSUPPORTED;
}

}  // namespace

attest_status two_pass_backward(const attest_backward_args& args, TrafficSink sink) {
  if (args.problem->dtype != ATTEST_F32) return ATTEST_UNSUPPORTED;
  return sink == nullptr ? run<simt::Uncounted>(args, sink) : run<simt::Counted>(args, sink);
}

}  // namespace attest::gpu::cuda
