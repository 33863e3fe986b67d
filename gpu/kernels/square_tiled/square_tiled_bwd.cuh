#pragma once

#include "gpu/kernels/square_tiled/square_block.cuh"
#include "gpu/kernels/tiles/backward_lines.cuh"

/// Attention backward by square tiles for all five products: P and then dS lie in global memory in
/// float32, so that fast memory may be below head_dim^2 words. Every pair is visited, masked or
/// not. No atomic addition: equal calls give equal bits. With tiles of tensor cores, P and dS are
/// rounded to the tensors' type for their products.
///
/// Grid:   D by rows; a block for each b queries of a (batch, query head) for P, dS and dQ, for
///         each b keys of a (batch, key head) for dV and dK, summed over the heads of a group;
///         gpu/square_tiled_bwd has b = 32.
/// Shared: two panels (b, b) and b words.
/// Words:  of the schedule square_tiled_bwd:b=b, but a group leaves no partial sums.
///         [gpu/kernels/square_tiled/square_tiled_bwd_test "words", gpu/kernels/capped_test]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Mem, class T = float>
struct SquareTiledBwdArguments {
  BackwardArguments<Mem, T> call;
  typename Mem::template Out<float> S;  // (batch, heads, seqlen_q, seqlen_k), P and then dS
};

template <class T, class Mem>
__global__ void __launch_bounds__(Deltas::kLanes)
    square_tiled_bwd_deltas(BackwardArguments<Mem, T> a) {
  Mem mem(a.sink);
  const DeltaRow row = delta_row(mem, a);
  if (row.exists()) store_delta(mem, a, row);
  mem.flush();
}

/// P and dS are made alike: an inner product for each pair, with a word of each row.
enum class PairMatrix { P, dS };

template <class Tile, PairMatrix kMatrix, class Mem>
__device__ void store_pairs(Mem& mem,
                            const SquareTiledBwdArguments<Mem, typename Tile::Element>& arguments) {
  constexpr int kSide = Tile::kSide;
  const auto& a = arguments.call;
  ATTEST_DYNAMIC_SHARED(float, panels);
  ATTEST_SHARED(float, row_words, [Tile::kSide]);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  const Sequence& sequence = block.sequence;
  const std::int64_t head = block.place.head, head_kv = head / block.group,
                     first = block.place.first;
  if (first >= sequence.q_length) return;  // the whole block
  const int rows = tile_extent<Tile>(first, sequence.q_length);
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
  const std::int64_t position = sequence.q_begin + first;
  if constexpr (kMatrix == PairMatrix::P) {
    load_row_words<Tile>(mem, a.LSE, a.lse, row_origin(a.lse, sequence, head, position), rows,
                         row_words);
  } else {
    load_row_words<Tile>(mem, a.D, a.d, row_origin(a.d, sequence, head, position), rows, row_words);
  }
  const auto S = block.pairs(arguments.S, head);
  for (std::int64_t key = 0; key < sequence.k_length; key += kSide) {
    const SquarePlace place{first, key, rows, tile_extent<Tile>(key, sequence.k_length)};
    SquareSums<Tile> sums = {};
    if constexpr (kMatrix == PairMatrix::P) {
      add_product<Tile>(mem, block.queries(a.Q, a.q, head),
                        block.keys(a.K, a.k, head_kv).transposed(), place, a.shape.head_dim_qk,
                        panels, sums);
    } else {
      add_product<Tile>(mem, block.queries(a.dO, a.d_o, head),
                        block.keys(a.V, a.v, head_kv).transposed(), place, a.shape.head_dim_v,
                        panels, sums);
    }
    for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
      const float word = row_words[i - first];
      const bool visible = pair_visible(mem, a.shape, a.mask, sequence, i, j);
      float value = 0;
      if constexpr (kMatrix == PairMatrix::P) {
        if (visible) {
          value = expf(score_of(sum, a.shape, slope, i + sequence.shift, j).value - word);
        }
      } else {
        const float P = mem.load(arguments.S, S.at(i, j));
        if (visible) value = P * (sum - word);
      }
      mem.store(arguments.S, S.at(i, j), value);
    });
  }
}

template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_bwd_p(SquareTiledBwdArguments<Mem, typename Tile::Element> arguments) {
  Mem mem(arguments.call.sink);
  store_pairs<Tile, PairMatrix::P>(mem, arguments);
  mem.flush();
}

template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_bwd_ds(SquareTiledBwdArguments<Mem, typename Tile::Element> arguments) {
  Mem mem(arguments.call.sink);
  store_pairs<Tile, PairMatrix::dS>(mem, arguments);
  mem.flush();
}

/// dQ = scale dS K.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_bwd_dq(SquareTiledBwdArguments<Mem, typename Tile::Element> arguments) {
  constexpr int kSide = Tile::kSide;
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  const std::int64_t head = block.place.head, first = block.place.first,
                     end = block.sequence.q_length;
  const auto dS = block.pairs(arguments.S, head);
  const auto K = block.keys(a.K, a.k, head / block.group);
  const auto dQ = block.queries(a.dQ, a.dq, head);
  for (int column = 0; first < end && column < a.shape.head_dim_qk; column += kSide) {
    const SquarePlace place{first, column, tile_extent<Tile>(first, end),
                            tile_extent<Tile>(column, a.shape.head_dim_qk)};
    SquareSums<Tile> sums = {};
    add_product<Tile>(mem, dS, K, place, block.sequence.k_length, panels, sums);
    for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
      mem.store(a.dQ, dQ.at(i, j), rounded<typename Tile::Element>(a.shape.softmax_scale * sum));
    });
  }
  mem.flush();
}

/// C = factor S^T B summed over the heads of a group: dV from P and dO, dK from dS and Q.
template <class Tile, class Mem>
__device__ void store_key_product(
    Mem& mem, const SquareTiledBwdArguments<Mem, typename Tile::Element>& arguments,
    typename Mem::template In<typename Tile::Element> B, const Strides& b,
    typename Mem::template Out<typename Tile::Element> C, const Strides& c, int columns,
    float factor) {
  constexpr int kSide = Tile::kSide;
  const auto& a = arguments.call;
  ATTEST_DYNAMIC_SHARED(float, panels);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_k, a.shape.num_heads_kv);
  const std::int64_t head_kv = block.place.head, first = block.place.first,
                     end = block.sequence.k_length;
  const auto out = block.keys(C, c, head_kv);
  for (int column = 0; first < end && column < columns; column += kSide) {
    const SquarePlace place{first, column, tile_extent<Tile>(first, end),
                            tile_extent<Tile>(column, columns)};
    SquareSums<Tile> sums = {};
    for (std::int64_t head = head_kv * block.group; head < (head_kv + 1) * block.group; ++head) {
      add_product<Tile>(mem, block.pairs(arguments.S, head).transposed(), block.queries(B, b, head),
                        place, block.sequence.q_length, panels, sums);
    }
    for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
      mem.store(C, out.at(i, j), rounded<typename Tile::Element>(factor * sum));
    });
  }
}

template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_bwd_dv(SquareTiledBwdArguments<Mem, typename Tile::Element> arguments) {
  const auto& a = arguments.call;
  Mem mem(a.sink);
  store_key_product<Tile>(mem, arguments, a.dO, a.d_o, a.dV, a.dv, a.shape.head_dim_v, 1);
  mem.flush();
}

template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_bwd_dk(SquareTiledBwdArguments<Mem, typename Tile::Element> arguments) {
  const auto& a = arguments.call;
  Mem mem(a.sink);
  store_key_product<Tile>(mem, arguments, a.Q, a.q, a.dK, a.dk, a.shape.head_dim_qk,
                          a.shape.softmax_scale);
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for all six launches in turn.
template <class Tile, class Mem, class Launch>
void square_tiled_bwd_launches(const SquareTiledBwdArguments<Mem, typename Tile::Element>& a,
                               Launch&& launch) {
  using T = typename Tile::Element;
  const AttentionShape& shape = a.call.shape;
  const auto go = [&](const char* name, const BlockLine& line, auto* kernel) {
    launch(kernel_name(name, Tile::name()), line, kernel, a);
  };
  const BlockLine keys = square_key_line<Tile>(shape);
  launch(kernel_name("square_tiled_bwd_deltas", name_of_type<T>()), delta_line(shape),
         square_tiled_bwd_deltas<T, Mem>, a.call);
  go("square_tiled_bwd_p", square_query_line<Tile>(shape, 1), square_tiled_bwd_p<Tile, Mem>);
  go("square_tiled_bwd_dv", keys, square_tiled_bwd_dv<Tile, Mem>);
  go("square_tiled_bwd_ds", square_query_line<Tile>(shape, 1), square_tiled_bwd_ds<Tile, Mem>);
  go("square_tiled_bwd_dq", square_query_line<Tile>(shape, 0), square_tiled_bwd_dq<Tile, Mem>);
  go("square_tiled_bwd_dk", keys, square_tiled_bwd_dk<Tile, Mem>);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
