#pragma once

#include <algorithm>
#include <string>

#include "gpu/kernels/tiles/deltas.cuh"
#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/key_gradients.cuh"
#include "gpu/kernels/tiles/query_gradients.cuh"

/// Launches of the backward kernels.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

inline BlockLine delta_line(const AttentionShape& shape) {
  return {blocks_for(shape.seqlen_q, Deltas::kRows, shape.num_heads_q, shape.batch), Deltas::kLanes,
          0};
}

template <class Tile>
BlockLine query_line(const Tile&, const AttentionShape& shape) {
  return {
      blocks_for(shape.seqlen_q, Tile::kResident, shape.num_heads_q, shape.batch), Tile::kLanes,
      bytes_of_floats(QueryGradients::shared_floats<Tile>(shape.head_dim_qk, shape.head_dim_v))};
}

template <class Tile>
BlockLine key_line(const Tile&, const AttentionShape& shape) {
  return {blocks_for(shape.seqlen_k, Tile::kResident, shape.num_heads_kv, shape.batch),
          Tile::kLanes,
          bytes_of_floats(KeyGradients::shared_floats<Tile>(shape.head_dim_qk, shape.head_dim_v))};
}

/// Rows that pass at once.
template <int kResident = 32>
int passing_rows(const AttentionShape& shape) {
  return with_backward_tile<kResident>(widest_head(shape),
                                       [](auto tile) { return decltype(tile)::kPassing; });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
