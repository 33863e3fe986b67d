#pragma once

#include "gpu/kernels/square_tiled/square_softmax.cuh"
#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/tile.cuh"

/// Attention by square tiles, forward and backward: blocks of one side's rows, and the matrices of
/// their heads.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// A block for each tile of queries of a (batch, query head), or of keys of a (batch, key head);
/// `row_words` of shared memory for each row of a tile.
template <class Tile>
BlockLine square_query_line(const AttentionShape& shape, int row_words) {
  return {blocks_for(shape.seqlen_q, Tile::kSide, shape.num_heads_q, shape.batch), Tile::kLanes,
          bytes_of_floats(Tile::kPanels), bytes_of_floats(Tile::kSide * row_words)};
}
template <class Tile>
BlockLine square_key_line(const AttentionShape& shape) {
  return {blocks_for(shape.seqlen_k, Tile::kSide, shape.num_heads_kv, shape.batch), Tile::kLanes,
          bytes_of_floats(Tile::kPanels)};
}

/// Beginning of such a block; its place is that of a tile of `rows` rows of `heads`.
template <class Tile>
struct SquareBlock {
  AttentionShape shape;
  BlockPlace place;
  Sequence sequence;
  std::int64_t group;

  template <class Mem>
  __device__ SquareBlock(Mem& mem, const AttentionShape& of, const MaskArguments<Mem>& mask,
                         std::int64_t rows, std::int64_t heads)
      : shape(of),
        place(place_of_block(blockIdx.x, rows, Tile::kSide, heads)),
        sequence(sequence_of(mem, of, mask, place.batch)),
        group(of.num_heads_q / of.num_heads_kv) {}

  template <class Pointer>
  __device__ MatrixView<Pointer> queries(Pointer data, const Strides& s, std::int64_t head) const {
    return {data, row_origin(s, sequence, head, sequence.q_begin), s.row, s.column};
  }
  template <class Pointer>
  __device__ MatrixView<Pointer> keys(Pointer data, const Strides& s, std::int64_t head) const {
    return {data, row_origin(s, sequence, head, sequence.k_begin), s.row, s.column};
  }
  /// Returns a head's matrix of (batch, query heads, seqlen_q, seqlen_k).
  template <class Pointer>
  __device__ MatrixView<Pointer> pairs(Pointer data, std::int64_t head) const {
    const std::int64_t matrix = place.batch * shape.num_heads_q + head;
    return {data, matrix * shape.seqlen_q * shape.seqlen_k, shape.seqlen_k, 1};
  }
};

/// LSE or D of a block's rows into shared memory.
template <class Tile, class Mem>
__device__ void load_row_words(Mem& mem, typename Mem::template In<float> tensor,
                               const Strides& strides, std::int64_t origin, int rows,
                               float* shared) {
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += Tile::kLanes) {
    shared[i] = mem.load(tensor, origin + i * strides.row);
  }
}

/// Products of a tile of pairs become scores, -inf where masked or beyond; each that exists goes to
/// store(i, j, score).
template <class Tile, class Mem, class T, class Store>
__device__ void finish_square_scores(Mem& mem, const ForwardArguments<Mem, T>& a,
                                     const Sequence& sequence, float slope,
                                     const SquarePlace& place, float* panels,
                                     SquareSums<Tile>& sums, const Store& store) {
  map_elements<Tile>(
      place, sums, panels, -INFINITY, [&](std::int64_t i, std::int64_t j, float product) {
        const float score = pair_visible(mem, a.shape, a.mask, sequence, i, j)
                                ? score_of(product, a.shape, slope, i + sequence.shift, j).value
                                : -INFINITY;
        store(i, j, score);
        return score;
      });
}

/// LSE of a block's queries.
template <class Tile, class Mem, class T>
__device__ void store_square_LSE(Mem& mem, const ForwardArguments<Mem, T>& a,
                                 const SquareBlock<Tile>& block,
                                 const SquareStatistics<Tile>& statistics) {
  const Sequence& sequence = block.sequence;
  const std::int64_t first = block.place.first,
                     origin =
                         row_origin(a.lse, sequence, block.place.head, sequence.q_begin + first);
  statistics.for_LSE(tile_extent<Tile>(first, sequence.q_length),
                     [&](int row, float LSE) { mem.store(a.LSE, origin + row * a.lse.row, LSE); });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
