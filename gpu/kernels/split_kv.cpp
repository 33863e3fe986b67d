#include "gpu/kernels/split_kv.hpp"

#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/split_kv.cuh"

namespace attest::gpu {
namespace {

std::int64_t shared_floats(const AttentionShape& shape) {
  return Flash2::shared_floats(shape.head_dim_qk, shape.head_dim_v);
}

std::int64_t blocks(const AttentionShape& shape) {
  return blocks_for(shape.seqlen_q, Flash2::kBlockQ, shape.num_heads_q, shape.batch);
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.head_dim_v <= kMostColumns &&
         grid_fits(SplitKv::kSplits * blocks(shape), shared_floats(shape), emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return SplitKv::kSplits * tensor_rows(problem) * problem.num_heads_q * (problem.head_dim_v + 1);
}

simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  if (blocks(shape) == 0) return {};  // no query: nothing to write
  SplitParts<simt::Counted> parts;
  parts.O = call.take("O of a part", SplitKv::kSplits * call.o_words());
  parts.LSE = call.take("LSE of a part", SplitKv::kSplits * call.lse_words());
  parts.o = call.o_strides();
  parts.lse = call.lse_strides();
  parts.o_part = call.o_words();
  parts.lse_part = call.lse_words();
  simt::LaunchReport report = with_columns(shape.head_dim_v, [&]<int kColumns>() {
    return simt::launch(
        grid_of(SplitKv::kSplits * blocks(shape), Flash2::kLanes, shared_floats(shape)), emulation,
        call.memory, split_kv_parts<kColumns, simt::Counted>, call.arguments, parts);
  });
  return report += simt::launch(grid_of(blocks(shape), Flash2::kLanes, 0), emulation, call.memory,
                                split_kv_merge<simt::Counted>, call.arguments, parts);
}

}  // namespace

const EmulatedKernel& split_kv_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/split_kv", "CUDA, emulated on the host: flash2 on four parts of the keys, merged",
            "split_kv:splits=4,bq=32,bk=32");
        d.numerics.lse_splits = 1;
        return d;
      }(),
      {fits, workspace_words, run});
  return kernel;
}

}  // namespace attest::gpu
