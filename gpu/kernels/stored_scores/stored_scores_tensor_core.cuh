#pragma once

#include "gpu/kernels/square_tiled/square_tensor_tile.cuh"
#include "gpu/kernels/square_tiled/square_tiled.cuh"
#include "gpu/kernels/stored_scores/stored_scores.cuh"

/// Forward on tensor cores with the score matrix in global memory, in float32: scores, then O, by
/// tiles of 32 by 32. Every pair is visited, masked or not.
///
/// Grid:   one block for each 32 queries of a (batch, head), all in x; 4 warps. softmax_rows: one
///         warp for each row.
/// Shared: two panels (32, 32); hybrid: Q (32, head_dim_qk) and two panels, then P (32, 32) and V
///         (32, 128), and 32 words of LSE.
/// Words:  those of the schedules standard:bm=32,bn=32,bl=32 and hybrid:bq=32,oq=32,ov=128.
///         [gpu/kernels/schedule_words_test]
/// Source: Dao et al. 2022, Algorithm 0; hybrid ours.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Returns the arguments of a launch that touches no tensor of the call.
template <class Mem, class T>
ForwardArguments<Mem> without_tensors(const ForwardArguments<Mem, T>& a) {
  ForwardArguments<Mem> plain;
  plain.shape = a.shape;
  plain.mask = a.mask;
  plain.sink = a.sink;
  return plain;
}

template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    standard_tensor_core_scores(SquareTiledArguments<Mem, typename Tile::Element> arguments) {
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  if (block.place.first < block.sequence.q_length) {
    store_square_scores<Tile>(mem, arguments, block, panels, [](const SquareSums<Tile>&) {});
  }
  mem.flush();
}

/// O = P V.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    standard_tensor_core_values(SquareTiledArguments<Mem, typename Tile::Element> arguments) {
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  const std::int64_t head = block.place.head, first = block.place.first,
                     end = block.sequence.q_length;
  const auto P = block.pairs(arguments.S, head);
  const auto V = block.keys(a.V, a.v, head / block.group);
  const auto O = block.queries(a.O, a.o, head);
  for (int column = 0; first < end && column < a.shape.head_dim_v; column += Tile::kSide) {
    const SquarePlace place{first, column, tile_extent<Tile>(first, end),
                            tile_extent<Tile>(column, a.shape.head_dim_v)};
    SquareSums<Tile> sums = {};
    add_product<Tile>(mem, P, V, place, block.sequence.k_length, panels, sums);
    for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
      mem.store(a.O, O.at(i, j), rounded<typename Tile::Element>(sum));
    });
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for scores, softmax and O in turn.
template <class Tile, class Mem, class Launch>
void standard_tensor_core_launches(const SquareTiledArguments<Mem, typename Tile::Element>& a,
                                   Launch&& launch) {
  const AttentionShape& shape = a.call.shape;
  launch(kernel_name("standard_tensor_core_scores", Tile::name()),
         square_query_line<Tile>(shape, 0), standard_tensor_core_scores<Tile, Mem>, a);
  launch("softmax_rows", StoredScores::softmax_line(shape), softmax_rows<Mem>,
         without_tensors(a.call), ScoreMatrix<Mem>{a.S});
  launch(kernel_name("standard_tensor_core_values", Tile::name()),
         square_query_line<Tile>(shape, 0), standard_tensor_core_values<Tile, Mem>, a);
}

/// Panels of the hybrid kernel: those of Q stay, or four of V pass by at once.
template <class Tile>
struct HybridPanels {
  static constexpr int kPanel = Tile::kPanels / 2;  // words
  static constexpr int kValues = 4;                 // panels of V

  static BlockLine score_line(const AttentionShape& shape) {
    BlockLine line = square_query_line<Tile>(shape, 0);
    line.dynamic_shared_bytes += bytes_of_floats(tiles_of(shape.head_dim_qk, Tile::kSide) * kPanel);
    return line;
  }
  static BlockLine value_line(const AttentionShape& shape) {
    BlockLine line = square_query_line<Tile>(shape, 1);
    line.dynamic_shared_bytes = bytes_of_floats((1 + kValues) * kPanel);
    return line;
  }
};

/// Scores and LSE, Q resident.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    hybrid_tensor_core_scores(SquareTiledArguments<Mem, typename Tile::Element> arguments) {
  constexpr int kSide = Tile::kSide, kPanel = HybridPanels<Tile>::kPanel;
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  float* const resident = panels + Tile::kPanels;
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  const Sequence& sequence = block.sequence;
  const std::int64_t head = block.place.head, first = block.place.first;
  if (first < sequence.q_length) {
    const int rows = tile_extent<Tile>(first, sequence.q_length), dk = a.shape.head_dim_qk;
    const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
    const auto Q = block.queries(a.Q, a.q, head);
    const auto K = block.keys(a.K, a.k, head / block.group).transposed();
    const auto S = block.pairs(arguments.S, head);
    for (int l = 0; l < dk; l += kSide) {
      load_panel<Tile>(mem, Q, first, l, rows, tile_extent<Tile>(l, dk),
                       resident + l / kSide * kPanel);
    }
    SquareStatistics<Tile> statistics;
    for (std::int64_t key = 0; key < sequence.k_length; key += kSide) {
      const SquarePlace place{first, key, rows, tile_extent<Tile>(key, sequence.k_length)};
      SquareSums<Tile> scores = {};
      typename Tile::Products products;
      for (int l = 0; l < dk; l += kSide) {
        const int depth = tile_extent<Tile>(l, dk);
        __syncthreads();  // the panel before is no longer read
        load_panel<Tile>(mem, K, l, key, depth, place.columns, panels);
        __syncthreads();
        products.add(resident + l / kSide * kPanel, panels, depth, scores);
      }
      products.finish(panels, scores);
      finish_square_scores<Tile>(mem, a, sequence, slope, place, panels, scores,
                                 [&](std::int64_t i, std::int64_t j, float score) {
                                   mem.store(arguments.S, S.at(i, j), score);
                                 });
      statistics.take(scores);
    }
    store_square_LSE<Tile>(mem, a, block, statistics);
  }
  mem.flush();
}

/// O = f V, four tiles of columns at a time, f divided by its row sums.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    hybrid_tensor_core_values(SquareTiledArguments<Mem, typename Tile::Element> arguments) {
  using Panels = HybridPanels<Tile>;
  constexpr int kSide = Tile::kSide, kValues = Panels::kValues, kPanel = Panels::kPanel;
  const auto& a = arguments.call;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  ATTEST_SHARED(float, LSE, [Tile::kSide]);
  const SquareBlock<Tile> block(mem, a.shape, a.mask, a.shape.seqlen_q, a.shape.num_heads_q);
  const Sequence& sequence = block.sequence;
  const std::int64_t head = block.place.head, first = block.place.first;
  const int dv = a.shape.head_dim_v;
  const int rows = first < sequence.q_length ? tile_extent<Tile>(first, sequence.q_length) : 0;
  load_row_words<Tile>(mem, a.LSE, a.lse,
                       row_origin(a.lse, sequence, head, sequence.q_begin + first), rows, LSE);
  using Words = typename Mem::template Out<float>;
  const WeightView<Words> weights{block.template pairs<Words>(arguments.S, head), LSE, first};
  const auto V = block.keys(a.V, a.v, head / block.group);
  const auto O = block.queries(a.O, a.o, head);
  const SquareLane at = square_lane<Tile>();
  for (int column = 0; rows > 0 && column < dv; column += kValues * kSide) {
    const auto columns = [&](int part) {
      const int begin = column + part * kSide;
      return begin < dv ? tile_extent<Tile>(begin, dv) : 0;
    };
    SquareSums<Tile> sums[kValues] = {};
    typename Tile::Products products[kValues];
    float totals[Tile::kRows] = {};
    for (std::int64_t key = 0; key < sequence.k_length; key += kSide) {
      const int depth = tile_extent<Tile>(key, sequence.k_length);
      __syncthreads();  // the panels before are no longer read, and LSE has come
      load_panel<Tile>(mem, weights, first, key, rows, depth, panels);
      ATTEST_UNROLL
      for (int part = 0; part < kValues; ++part) {
        load_panel<Tile>(mem, V, key, column + part * kSide, depth, columns(part),
                         panels + (1 + part) * kPanel);
      }
      __syncthreads();
      ATTEST_UNROLL
      for (int part = 0; part < kValues; ++part) {
        products[part].add(panels, panels + (1 + part) * kPanel, depth, sums[part]);
      }
      for (int k = 0; k < depth; ++k) {
        ATTEST_UNROLL
        for (int r = 0; r < Tile::kRows; ++r) totals[r] += Tile::get(panels, at.row + r, k);
      }
    }
    ATTEST_UNROLL
    for (int part = 0; part < kValues; ++part) {
      products[part].finish(panels, sums[part]);
      const SquarePlace place{first, column + part * kSide, rows, columns(part)};
      ATTEST_UNROLL
      for (int r = 0; r < Tile::kRows; ++r) {
        for (float& sum : sums[part][r]) sum = totals[r] == 0 ? 0 : sum / totals[r];
      }
      for_elements<Tile>(place, sums[part], panels,
                         [&](std::int64_t i, std::int64_t j, float mean) {
                           mem.store(a.O, O.at(i, j), rounded<typename Tile::Element>(mean));
                         });
    }
  }
  mem.flush();
}

/// For scores with LSE, and O, 128 columns at a time. LSE is not null.
template <class Tile, class Mem, class Launch>
void hybrid_tensor_core_launches(const SquareTiledArguments<Mem, typename Tile::Element>& a,
                                 Launch&& launch) {
  using Panels = HybridPanels<Tile>;
  launch(kernel_name("hybrid_tensor_core_scores", Tile::name()), Panels::score_line(a.call.shape),
         hybrid_tensor_core_scores<Tile, Mem>, a);
  launch(kernel_name("hybrid_tensor_core_values", Tile::name()), Panels::value_line(a.call.shape),
         hybrid_tensor_core_values<Tile, Mem>, a);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
