#pragma once

#include <algorithm>

#include "gpu/kernels/deltas.cuh"
#include "gpu/kernels/emulated.hpp"
#include "gpu/kernels/key_gradients.cuh"
#include "gpu/kernels/query_gradients.cuh"

/// Launches of the backward kernels.
namespace attest::gpu {

/// Blocks that all lie in x; there may be none.
struct BlockLine {
  std::int64_t blocks;
  int lanes;
  std::int64_t shared_floats;

  std::int64_t shared_bytes() const {
    return shared_floats * static_cast<std::int64_t>(sizeof(float));
  }
  /// Whether a device takes so many blocks, and the emulated one so much shared memory.
  bool fits(const simt::Emulation& emulation) const {
    return blocks <= kMostBlocks && shared_bytes() <= emulation.shared_bytes_limit;
  }
};

/// The kernel on all blocks; nothing of no block.
template <class Kernel, class... Arguments>
simt::LaunchReport launch_line(const BlockLine& line, const simt::Emulation& emulation,
                               const simt::GlobalMemory& memory, const Kernel& kernel,
                               const Arguments&... arguments) {
  if (line.blocks == 0) return {};
  return simt::launch({{static_cast<unsigned>(line.blocks), 1, 1},
                       {static_cast<unsigned>(line.lanes), 1, 1},
                       line.shared_bytes()},
                      emulation, memory, kernel, arguments...);
}

inline int widest_head(const AttentionShape& shape) {
  return std::max(shape.head_dim_qk, shape.head_dim_v);
}

inline BlockLine delta_line(const AttentionShape& shape) {
  return {blocks_for(shape.seqlen_q, Deltas::kRows, shape.num_heads_q, shape.batch), Deltas::kLanes,
          0};
}

template <class Tile>
BlockLine query_line(const Tile&, const AttentionShape& shape) {
  return {blocks_for(shape.seqlen_q, Tile::kResident, shape.num_heads_q, shape.batch), Tile::kLanes,
          QueryGradients::shared_floats<Tile>(shape.head_dim_qk, shape.head_dim_v)};
}

template <class Tile>
BlockLine key_line(const Tile&, const AttentionShape& shape) {
  return {blocks_for(shape.seqlen_k, Tile::kResident, shape.num_heads_kv, shape.batch),
          Tile::kLanes, KeyGradients::shared_floats<Tile>(shape.head_dim_qk, shape.head_dim_v)};
}

/// Rows that pass at once.
inline int passing_rows(const AttentionShape& shape) {
  return with_backward_tile(widest_head(shape), [](auto tile) { return decltype(tile)::kPassing; });
}

}  // namespace attest::gpu
