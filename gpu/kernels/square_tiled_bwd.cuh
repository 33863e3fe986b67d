#pragma once

#include "gpu/kernels/deltas.cuh"
#include "gpu/kernels/grid.hpp"
#include "gpu/kernels/square_product.cuh"

/// Attention backward by square tiles for all five products, float32: P and then dS lie in global
/// memory, so that fast memory may be below head_dim^2 words. Every pair is visited, masked or not.
/// No atomic addition: equal calls give equal bits.
///
/// Grid:   D by rows; a block for each 32 queries of a (batch, query head) for P, dS and dQ, for
///         each 32 keys of a (batch, key head) for dV and dK, summed over the heads of a group.
/// Shared: two panels (32, 32) and 32 words.
/// Words:  of the schedule square_tiled_bwd:b=32, but a group leaves no partial sums.
///         [gpu/kernels/square_tiled_bwd_test "words"]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct SquareTiledBwd {
  static BlockLine query_line(const AttentionShape& shape) {
    return {blocks_for(shape.seqlen_q, SquareTile::kSide, shape.num_heads_q, shape.batch),
            SquareTile::kLanes, 0};
  }
  static BlockLine key_line(const AttentionShape& shape) {
    return {blocks_for(shape.seqlen_k, SquareTile::kSide, shape.num_heads_kv, shape.batch),
            SquareTile::kLanes, 0};
  }
};

template <class Mem>
struct SquareTiledBwdArguments {
  BackwardArguments<Mem> call;
  typename Mem::template Out<float> S;  // (batch, heads, seqlen_q, seqlen_k), P and then dS
};

/// What the blocks of all launches but the first begin with.
template <class Mem>
struct SquareBlock {
  const BackwardArguments<Mem>& a;
  BlockPlace place;
  Sequence sequence;
  std::int64_t group;

  __device__ SquareBlock(Mem& mem, const BackwardArguments<Mem>& arguments, std::int64_t rows,
                         std::int64_t heads)
      : a(arguments),
        place(place_of_block(blockIdx.x, rows, SquareTile::kSide, heads)),
        sequence(sequence_of(mem, arguments.shape, arguments.mask, place.batch)),
        group(arguments.shape.num_heads_q / arguments.shape.num_heads_kv) {}

  template <class Pointer>
  __device__ MatrixView<Pointer> queries(Pointer data, const Strides& s, std::int64_t head) const {
    return {data, row_origin(s, sequence, head, sequence.q_begin), s.row, s.column};
  }
  template <class Pointer>
  __device__ MatrixView<Pointer> keys(Pointer data, const Strides& s, std::int64_t head) const {
    return {data, row_origin(s, sequence, head, sequence.k_begin), s.row, s.column};
  }
  template <class Pointer>
  __device__ MatrixView<Pointer> pairs(Pointer data, std::int64_t head) const {
    const std::int64_t matrix = place.batch * a.shape.num_heads_q + head;
    return {data, matrix * a.shape.seqlen_q * a.shape.seqlen_k, a.shape.seqlen_k, 1};
  }
};

template <class Mem>
__global__ void __launch_bounds__(Deltas::kLanes)
    square_tiled_bwd_deltas(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  const DeltaRow row = delta_row(mem, a);
  if (row.exists()) store_delta(mem, a, row);
  mem.flush();
}

/// P and dS are made alike: an inner product for each pair, with a word of each row.
enum class PairMatrix { P, dS };

template <PairMatrix kMatrix, class Mem>
__device__ void store_pairs(Mem& mem, const SquareTiledBwdArguments<Mem>& arguments) {
  constexpr int kSide = SquareTile::kSide;
  const BackwardArguments<Mem>& a = arguments.call;
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  ATTEST_SHARED(float, row_words, [SquareTile::kSide]);
  const SquareBlock<Mem> block(mem, a, a.shape.seqlen_q, a.shape.num_heads_q);
  const Sequence& sequence = block.sequence;
  const std::int64_t head = block.place.head, head_kv = head / block.group,
                     first = block.place.first;
  if (first >= sequence.q_length) return;  // the whole block
  const int rows = tile_extent(first, sequence.q_length);
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
  const std::int64_t position = sequence.q_begin + first;
  if constexpr (kMatrix == PairMatrix::P) {
    load_scalars(mem, a.LSE, a.lse, row_origin(a.lse, sequence, head, position), rows, row_words);
  } else {
    load_scalars(mem, a.D, a.d, row_origin(a.d, sequence, head, position), rows, row_words);
  }
  const auto S = block.pairs(arguments.S, head);
  for (std::int64_t key = 0; key < sequence.k_length; key += kSide) {
    const SquarePlace place{first, key, rows, tile_extent(key, sequence.k_length)};
    float sums[SquareTile::kRows] = {};
    if constexpr (kMatrix == PairMatrix::P) {
      add_product(mem, block.queries(a.Q, a.q, head), block.keys(a.K, a.k, head_kv).transposed(),
                  place, a.shape.head_dim_qk, panels, sums);
    } else {
      add_product(mem, block.queries(a.dO, a.d_o, head), block.keys(a.V, a.v, head_kv).transposed(),
                  place, a.shape.head_dim_v, panels, sums);
    }
    for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
      const float word = row_words[i - first];
      const bool visible = pair_visible(mem, a.shape, a.mask, sequence, i, j);
      float value = 0;
      if constexpr (kMatrix == PairMatrix::P) {
        if (visible) {
          value = expf(score_of(sums[r], a.shape, slope, i + sequence.shift, j).value - word);
        }
      } else {
        const float P = mem.load(arguments.S, S.at(i, j));
        if (visible) value = P * (sums[r] - word);
      }
      mem.store(arguments.S, S.at(i, j), value);
    });
  }
}

template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1)
    square_tiled_bwd_p(SquareTiledBwdArguments<Mem> arguments) {
  Mem mem(arguments.call.sink);
  store_pairs<PairMatrix::P>(mem, arguments);
  mem.flush();
}

template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1)
    square_tiled_bwd_ds(SquareTiledBwdArguments<Mem> arguments) {
  Mem mem(arguments.call.sink);
  store_pairs<PairMatrix::dS>(mem, arguments);
  mem.flush();
}

/// dQ = scale dS K.
template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1)
    square_tiled_bwd_dq(SquareTiledBwdArguments<Mem> arguments) {
  constexpr int kSide = SquareTile::kSide;
  const BackwardArguments<Mem>& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  const SquareBlock<Mem> block(mem, a, a.shape.seqlen_q, a.shape.num_heads_q);
  const std::int64_t head = block.place.head, first = block.place.first,
                     end = block.sequence.q_length;
  const auto dS = block.pairs(arguments.S, head);
  const auto K = block.keys(a.K, a.k, head / block.group);
  const auto dQ = block.queries(a.dQ, a.dq, head);
  for (int column = 0; first < end && column < a.shape.head_dim_qk; column += kSide) {
    const SquarePlace place{first, column, tile_extent(first, end),
                            tile_extent(column, a.shape.head_dim_qk)};
    float sums[SquareTile::kRows] = {};
    add_product(mem, dS, K, place, block.sequence.k_length, panels, sums);
    for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
      mem.store(a.dQ, dQ.at(i, j), a.shape.softmax_scale * sums[r]);
    });
  }
  mem.flush();
}

/// C = factor S^T B summed over the heads of a group: dV from P and dO, dK from dS and Q.
template <class Mem>
__device__ void store_key_product(Mem& mem, const SquareTiledBwdArguments<Mem>& arguments,
                                  typename Mem::template In<float> B, const Strides& b,
                                  typename Mem::template Out<float> C, const Strides& c,
                                  int columns, float factor) {
  constexpr int kSide = SquareTile::kSide;
  const BackwardArguments<Mem>& a = arguments.call;
  ATTEST_SHARED(float, panels, [SquareTile::kPanels]);
  const SquareBlock<Mem> block(mem, a, a.shape.seqlen_k, a.shape.num_heads_kv);
  const std::int64_t head_kv = block.place.head, first = block.place.first,
                     end = block.sequence.k_length;
  const auto out = block.keys(C, c, head_kv);
  for (int column = 0; first < end && column < columns; column += kSide) {
    const SquarePlace place{first, column, tile_extent(first, end), tile_extent(column, columns)};
    float sums[SquareTile::kRows] = {};
    for (std::int64_t head = head_kv * block.group; head < (head_kv + 1) * block.group; ++head) {
      add_product(mem, block.pairs(arguments.S, head).transposed(), block.queries(B, b, head),
                  place, block.sequence.q_length, panels, sums);
    }
    for_elements(place, [&](int r, std::int64_t i, std::int64_t j) {
      mem.store(C, out.at(i, j), factor * sums[r]);
    });
  }
}

template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1)
    square_tiled_bwd_dv(SquareTiledBwdArguments<Mem> arguments) {
  const BackwardArguments<Mem>& a = arguments.call;
  Mem mem(a.sink);
  store_key_product(mem, arguments, a.dO, a.d_o, a.dV, a.dv, a.shape.head_dim_v, 1);
  mem.flush();
}

template <class Mem>
__global__ void __launch_bounds__(SquareTile::kLanes, 1)
    square_tiled_bwd_dk(SquareTiledBwdArguments<Mem> arguments) {
  const BackwardArguments<Mem>& a = arguments.call;
  Mem mem(a.sink);
  store_key_product(mem, arguments, a.Q, a.q, a.dK, a.dk, a.shape.head_dim_qk,
                    a.shape.softmax_scale);
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
