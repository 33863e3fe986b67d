#pragma once

#include "gpu/kernels/loss/loss.cuh"
#include "gpu/kernels/tiles/grid.hpp"

/// The loss gradient by square tiles of b x b, S and then p in global memory: for fast memory
/// below head_dim^2 words. No atomic addition: equal calls give equal bits.
///
/// Grid:   products: a block for each tile of C; else a block for each b rows; gpu/loss_small has
///         b = 32.
/// Shared: two panels (b, b) and 2 b words.
/// Words:  of the schedule loss_small:b=b for dX; dY takes Z = f A3 and Z^T c besides.
///         [gpu/kernels/loss/loss_test "words", gpu/kernels/capped_test]
/// Source: Li et al. 2024, Algorithm 6.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_small_product(ProductArguments<Mem> a) {
  constexpr int kSide = Tile::kSide;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  const std::int64_t across = (a.columns + kSide - 1) / kSide;
  const std::int64_t row = blockIdx.x / across * kSide, column = blockIdx.x % across * kSide;
  const SquarePlace place{row, column, tile_extent<Tile>(row, a.rows),
                          tile_extent<Tile>(column, a.columns)};
  SquareSums<Tile> sums = {};
  add_product<Tile>(mem, a.A, a.B, place, a.inner, panels, sums);
  for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
    mem.store(a.C.data, a.C.at(i, j), sum);
  });
  mem.flush();
}

/// S = QX A2^T and LSE.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_small_scores(LossArguments<Mem> a) {
  constexpr int kSide = Tile::kSide;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  const std::int64_t first = std::int64_t{blockIdx.x} * kSide;
  const int rows = tile_extent<Tile>(first, a.n);
  SquareStatistics<Tile> statistics;
  for (std::int64_t key = 0; key < a.n; key += kSide) {
    const SquarePlace place{first, key, rows, tile_extent<Tile>(key, a.n)};
    SquareSums<Tile> scores = {};
    add_product<Tile>(mem, a.QX, a.A2.transposed(), place, a.d, panels, scores);
    map_elements<Tile>(place, scores, panels, -INFINITY,
                       [&](std::int64_t i, std::int64_t j, float score) {
                         mem.store(a.S.data, a.S.at(i, j), score);
                         return score;
                       });
    statistics.take(scores);
  }
  statistics.for_LSE(rows, [&](int row, float LSE) { mem.store(a.LSE, first + row, LSE); });
  mem.flush();
}

/// LSE of a block's rows into shared memory, then f V.
template <class Tile, class Mem, class Finish>
__device__ void weigh_loss_rows(Mem& mem, const LossArguments<Mem>& a,
                                const typename LossArguments<Mem>::Given& values,
                                std::int64_t first, int rows, float* panels, float* LSE,
                                const Finish& finish) {
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += Tile::kLanes) {
    LSE[i] = mem.load(a.LSE, first + i);
  }
  const WeightView<typename Mem::template Out<float>> weights{a.S, LSE, first};
  weigh_rows<Tile>(mem, weights, values, rows, a.n, a.d, panels, finish);
}

/// c = f h - E and D = rowsum(c o f h).
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_small_residual(LossArguments<Mem> a) {
  constexpr int kRows = Tile::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  ATTEST_SHARED(float, LSE, [Tile::kSide]);
  const std::int64_t first = std::int64_t{blockIdx.x} * Tile::kSide;
  const int rows = tile_extent<Tile>(first, a.n);
  float D[kRows] = {};
  weigh_loss_rows<Tile>(mem, a, reading<Mem>(a.h), first, rows, panels, LSE,
                        [&](const SquarePlace& place, SquareSums<Tile>& fh) {
                          map_elements<Tile>(place, fh, panels, 0,
                                             [&](std::int64_t i, std::int64_t j, float mean) {
                                               const float c = mean - a.E.load(mem, i, j);
                                               mem.store(a.c.data, a.c.at(i, j), c);
                                               return c * mean;
                                             });
                          ATTEST_UNROLL
                          for (int r = 0; r < kRows; ++r) {
                            for (const float product : fh[r]) D[r] += product;
                          }
                        });
  const SquareLane at = square_lane<Tile>();
  ATTEST_UNROLL
  for (int r = 0; r < kRows; ++r) {
    const float sum = row_sum<Tile>(D[r]);
    if (at.column == 0 && at.row + r < rows) mem.store(a.D, first + at.row + r, sum);
  }
  mem.flush();
}

/// Z = f A3.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    loss_small_weigh(LossArguments<Mem> a) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  ATTEST_SHARED(float, LSE, [Tile::kSide]);
  const std::int64_t first = std::int64_t{blockIdx.x} * Tile::kSide;
  weigh_loss_rows<Tile>(mem, a, a.A3, first, tile_extent<Tile>(first, a.n), panels, LSE,
                        [&](const SquarePlace& place, SquareSums<Tile>& sums) {
                          for_elements<Tile>(place, sums, panels,
                                             [&](std::int64_t i, std::int64_t j, float mean) {
                                               mem.store(a.Z.data, a.Z.at(i, j), mean);
                                             });
                        });
  mem.flush();
}

/// p = f o (c h^T - D) over S.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks) loss_small_p(LossArguments<Mem> a) {
  constexpr int kSide = Tile::kSide;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, panels);
  ATTEST_SHARED(float, LSE, [Tile::kSide]);
  ATTEST_SHARED(float, D, [Tile::kSide]);
  const std::int64_t first = std::int64_t{blockIdx.x} * kSide;
  const int rows = tile_extent<Tile>(first, a.n);
  for (int i = static_cast<int>(threadIdx.x); i < rows; i += Tile::kLanes) {
    LSE[i] = mem.load(a.LSE, first + i);
    D[i] = mem.load(a.D, first + i);
  }
  for (std::int64_t key = 0; key < a.n; key += kSide) {
    const SquarePlace place{first, key, rows, tile_extent<Tile>(key, a.n)};
    SquareSums<Tile> sums = {};
    add_product<Tile>(mem, a.c, a.h.transposed(), place, a.d, panels, sums);
    for_elements<Tile>(place, sums, panels, [&](std::int64_t i, std::int64_t j, float sum) {
      const float f = expf(a.S.load(mem, i, j) - LSE[i - first]);
      mem.store(a.S.data, a.S.at(i, j), f * (sum - D[i - first]));
    });
  }
  mem.flush();
}

/// A block for each tile of so many rows and columns; `row_words` of shared memory for each row of
/// it.
template <class Tile>
BlockLine loss_small_line(std::int64_t rows, std::int64_t columns, int row_words) {
  return {blocks_for(rows, Tile::kSide, blocks_for(columns, Tile::kSide, 1, 1), 1), Tile::kLanes,
          bytes_of_floats(Tile::kPanels), bytes_of_floats(Tile::kSide * row_words)};
}

/// The launch of one product.
template <class Tile, class Mem, class Launch>
void loss_small_multiply(const ProductArguments<Mem>& task, Launch&& launch) {
  launch(kernel_name("loss_small_product", Tile::name()),
         loss_small_line<Tile>(task.rows, task.columns, 0), loss_small_product<Tile, Mem>, task);
}

/// launch(name, line, kernel, arguments...) for all launches in turn; dY where there is one.
template <class Tile, class Mem, class Launch>
void loss_small_launches(const LossArguments<Mem>& a, Launch&& launch) {
  const auto product = [&](const ProductArguments<Mem>& task) {
    loss_small_multiply<Tile>(task, launch);
  };
  const auto rows = [&](const char* name, int row_words, auto* kernel) {
    launch(kernel_name(name, Tile::name()), loss_small_line<Tile>(a.n, 1, row_words), kernel, a);
  };
  product({a.A1, a.X, a.QX, a.n, a.d, a.d, a.sink});
  product({a.A3, a.Y, a.h, a.n, a.d, a.d, a.sink});
  rows("loss_small_scores", 0, loss_small_scores<Tile, Mem>);
  rows("loss_small_residual", 1, loss_small_residual<Tile, Mem>);
  if (a.dY.data) {
    rows("loss_small_weigh", 1, loss_small_weigh<Tile, Mem>);
    product({reading<Mem>(a.Z).transposed(), reading<Mem>(a.c), a.dY, a.d, a.d, a.n, a.sink});
  }
  rows("loss_small_p", 2, loss_small_p<Tile, Mem>);
  product({reading<Mem>(a.S), a.A2, a.W, a.n, a.d, a.n, a.sink});
  product({a.A1.transposed(), reading<Mem>(a.W), a.dX, a.d, a.d, a.n, a.sink});
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
