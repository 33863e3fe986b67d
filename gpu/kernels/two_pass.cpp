#include "gpu/kernels/two_pass.hpp"

#include <algorithm>

#include "gpu/kernels/two_pass.cuh"

namespace attest::gpu {
namespace {

using Arguments = BackwardArguments<simt::Counted>;

std::int64_t shared_bytes(const AttentionShape& shape) {
  return TwoPass::shared_floats(shape.head_dim_qk, shape.head_dim_v) *
         static_cast<std::int64_t>(sizeof(float));
}

simt::LaunchShape grid_of(const AttentionShape& shape, std::int64_t rows, std::int64_t heads) {
  const std::int64_t blocks = blocks_for(rows, TwoPass::kBlock, heads, shape.batch);
  return {{static_cast<unsigned>(blocks), 1, 1}, {TwoPass::kLanes, 1, 1}, shared_bytes(shape)};
}

template <int kColumns>
simt::LaunchReport launch(const EmulatedBackward& call, const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  simt::LaunchReport report;
  const simt::LaunchShape queries = grid_of(shape, shape.seqlen_q, shape.num_heads_q),
                          keys = grid_of(shape, shape.seqlen_k, shape.num_heads_kv);
  if (queries.grid.x > 0) {
    report = simt::launch(queries, emulation, call.memory,
                          two_pass_queries<kColumns, simt::Counted>, call.arguments);
  }
  if (keys.grid.x > 0) {
    report += simt::launch(keys, emulation, call.memory, two_pass_keys<kColumns, simt::Counted>,
                           call.arguments);
  }
  return report;
}

}  // namespace

bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  const auto blocks = [&](std::int64_t rows, std::int64_t heads) {
    return blocks_for(rows, TwoPass::kBlock, heads, shape.batch);
  };
  constexpr int kMostColumns = 576;  // of the largest launch below
  return std::max(shape.head_dim_qk, shape.head_dim_v) <= kMostColumns &&
         shared_bytes(shape) <= emulation.shared_bytes_limit &&
         std::max(blocks(shape.seqlen_q, shape.num_heads_q),
                  blocks(shape.seqlen_k, shape.num_heads_kv)) <= kMostBlocks;
}

simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  const int columns = std::max(shape.head_dim_qk, shape.head_dim_v);
  if (columns <= 32) return launch<1>(call, emulation);
  if (columns <= 64) return launch<2>(call, emulation);
  if (columns <= 128) return launch<4>(call, emulation);
  if (columns <= 256) return launch<8>(call, emulation);
  return launch<18>(call, emulation);
}

FastMemory two_pass_fast_memory(const AttentionShape& shape) {
  const int columns = columns_for(std::max(shape.head_dim_qk, shape.head_dim_v));
  const auto of_pass = [&](const char* kernel) {
    return FastMemory{shared_bytes(shape), TwoPass::kLanes,
                      declared_thread_memory(kernel, columns)};
  };
  const FastMemory queries = of_pass("two_pass_queries"), keys = of_pass("two_pass_keys");
  return queries.words() > keys.words() ? queries : keys;
}

}  // namespace attest::gpu
