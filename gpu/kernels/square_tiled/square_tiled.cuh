#pragma once

#include "gpu/kernels/square_tiled/square_block.cuh"

/// Attention forward by square tiles, the score matrix in global memory in float32: scores with
/// LSE, then O. No tile is as long as a head dimension. Every pair is visited, masked or not. With
/// tiles of tensor cores, P is rounded to the tensors' type and divided by the sum of what it
/// became.
///
/// Grid:   a block for each b queries of a (batch, head), all in x; gpu/square_tiled has b = 32.
/// Shared: two panels (b, b), and b words for O.
/// Words:  those of the schedule square_tiled:b=b.
///         [gpu/kernels/schedule_words_test, gpu/kernels/capped_test]
/// Source: Saha and Ye 2024, Algorithm 1 (differs: exponentials are taken of S - LSE).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Mem, class T = float>
struct SquareTiledArguments {
  ForwardArguments<Mem, T> call;        // LSE is not null
  typename Mem::template Out<float> S;  // (batch, heads, seqlen_q, seqlen_k)
};

/// Scores of a block's queries, tile after tile; take(scores), -inf where there is none.
template <class Tile, class Mem, class Take>
__device__ void store_square_scores(
    Mem& mem, const SquareTiledArguments<Mem, typename Tile::Element>& arguments,
    const SquareBlock<Tile>& block, float* panels, const Take& take) {
  const auto& a = arguments.call;
  const Sequence& sequence = block.sequence;
  const std::int64_t head = block.place.head, first = block.place.first;
  const int rows = tile_extent<Tile>(first, sequence.q_length);
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
  const auto Q = block.queries(a.Q, a.q, head);
  const auto K = block.keys(a.K, a.k, head / block.group);
  const auto S = block.pairs(arguments.S, head);
  for (std::int64_t key = 0; key < sequence.k_length; key += Tile::kSide) {
    const SquarePlace place{first, key, rows, tile_extent<Tile>(key, sequence.k_length)};
    SquareSums<Tile> scores = {};
    add_product<Tile>(mem, Q, K.transposed(), place, a.shape.head_dim_qk, panels, scores);
    finish_square_scores<Tile>(mem, a, sequence, slope, place, panels, scores,
                               [&](std::int64_t i, std::int64_t j, float score) {
                                 mem.store(arguments.S, S.at(i, j), score);
                               });
    take(scores);
  }
}

/// Scores and LSE.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_scores(SquareTiledArguments<Mem, typename Tile::Element> arguments) {
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  if (block.place.first < block.sequence.q_length) {
    SquareStatistics<Tile> statistics;
    store_square_scores<Tile>(mem, arguments, block, panels,
                              [&](const SquareSums<Tile>& scores) { statistics.take(scores); });
    store_square_LSE<Tile>(mem, a, block, statistics);
  }
  mem.flush();
}

/// O = f V.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    square_tiled_values(SquareTiledArguments<Mem, typename Tile::Element> arguments) {
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  ATTEST_SHARED(float, LSE, [Tile::kSide]);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  const Sequence& sequence = block.sequence;
  const std::int64_t head = block.place.head, first = block.place.first;
  if (first < sequence.q_length) {
    const int rows = tile_extent<Tile>(first, sequence.q_length);
    load_row_words<Tile>(mem, a.LSE, a.lse,
                         row_origin(a.lse, sequence, head, sequence.q_begin + first), rows, LSE);
    using Words = typename Mem::template Out<float>;
    const WeightView<Words> weights{block.template pairs<Words>(arguments.S, head), LSE, first};
    const auto O = block.queries(a.O, a.o, head);
    weigh_rows<Tile>(
        mem, weights, block.keys(a.V, a.v, head / block.group), rows, sequence.k_length,
        a.shape.head_dim_v, panels, [&](const SquarePlace& place, SquareSums<Tile>& sums) {
          for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float mean) {
            mem.store(a.O, O.at(i, j), rounded<typename Tile::Element>(mean));
          });
        });
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for both launches in turn.
template <class Tile, class Mem, class Launch>
void square_tiled_launches(const SquareTiledArguments<Mem, typename Tile::Element>& a,
                           Launch&& launch) {
  launch(kernel_name("square_tiled_scores", Tile::name()), square_query_line<Tile>(a.call.shape, 0),
         square_tiled_scores<Tile, Mem>, a);
  launch(kernel_name("square_tiled_values", Tile::name()), square_query_line<Tile>(a.call.shape, 1),
         square_tiled_values<Tile, Mem>, a);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
