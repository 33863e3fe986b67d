#pragma once

#include "gpu/kernels/attention.cuh"

/// Products of matrices in global memory by tiles of 32 x 32, for fast memory that holds three of
/// them whatever the head dimension: a tile of C stays in registers, panels of A and B pass by.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct SquareTile {
  static constexpr int kSide = 32, kLanes = 128, kStride = kSide + 1;
  static constexpr int kRows = kSide / (kLanes / 32);  // of C, of a lane
  static constexpr int kPanels = 2 * kSide * kStride;  // floats
};

/// Element (i, j) lies at origin + i row + j column.
template <class Pointer>
struct MatrixView {
  Pointer data;
  std::int64_t origin = 0, row = 0, column = 0;

  __device__ std::int64_t at(std::int64_t i, std::int64_t j) const {
    return origin + i * row + j * column;
  }
  __device__ MatrixView transposed() const { return {data, origin, column, row}; }
  /// Neighbouring lanes take neighbouring words.
  __device__ bool rows_adjoin() const { return row < column; }
  template <class Mem>
  __device__ float load(Mem& mem, std::int64_t i, std::int64_t j) const {
    return mem.load(data, at(i, j));
  }
};

/// A tile of C: rows row .. row + rows - 1, columns likewise.
struct SquarePlace {
  std::int64_t row, column;
  int rows, columns;
};

__device__ inline int tile_extent(std::int64_t first, std::int64_t end) {
  return static_cast<int>(end - first < SquareTile::kSide ? end - first : SquareTile::kSide);
}

/// The lane's column of a tile of C and the first of its rows.
struct SquareLane {
  int row, column;
};

__device__ inline SquareLane square_lane() {
  return {warp_in_block() * SquareTile::kRows, lane_in_warp()};
}

/// rows x columns elements from (i, j) on; zeros fill the panel.
template <class Mem, class Matrix>
__device__ void load_panel(Mem& mem, const Matrix& matrix, std::int64_t i, std::int64_t j, int rows,
                           int columns, float* panel) {
  constexpr int kSide = SquareTile::kSide;
  for (int k = static_cast<int>(threadIdx.x); k < kSide * kSide; k += SquareTile::kLanes) {
    const int row = matrix.rows_adjoin() ? k % kSide : k / kSide,
              column = matrix.rows_adjoin() ? k / kSide : k % kSide;
    panel[row * SquareTile::kStride + column] =
        row < rows && column < columns ? matrix.load(mem, i + row, j + column) : 0;
  }
}

/// Nothing is done with the panels beside the product.
struct PanelsPass {
  __device__ void operator()(const float*, int) const {}
};

/// sums(r) += row r of the lane of A times the lane's column of B, over the inner extent; each
/// panel of A and its depth is shown to `see`.
template <class Mem, class A, class B, class See = PanelsPass>
__device__ void add_product(Mem& mem, const A& a, const B& b, const SquarePlace& place,
                            std::int64_t inner, float* panels, float (&sums)[SquareTile::kRows],
                            const See& see = {}) {
  constexpr int kSide = SquareTile::kSide, kStride = SquareTile::kStride;
  float* const A_panel = panels;
  float* const B_panel = panels + kSide * kStride;
  const SquareLane at = square_lane();
  for (std::int64_t l = 0; l < inner; l += kSide) {
    const int depth = tile_extent(l, inner);
    __syncthreads();  // the panels before are no longer read
    load_panel(mem, a, place.row, l, place.rows, depth, A_panel);
    load_panel(mem, b, l, place.column, depth, place.columns, B_panel);
    __syncthreads();
    for (int k = 0; k < depth; ++k) {
      const float x = B_panel[k * kStride + at.column];
      for (int r = 0; r < SquareTile::kRows; ++r) {
        sums[r] += A_panel[(at.row + r) * kStride + k] * x;
      }
    }
    see(A_panel, depth);
  }
}

/// store(r, i, j) for each element of the tile that the lane has and that exists.
template <class Store>
__device__ void for_elements(const SquarePlace& place, const Store& store) {
  const SquareLane at = square_lane();
  if (at.column >= place.columns) return;
  for (int r = 0; r < SquareTile::kRows; ++r) {
    if (at.row + r < place.rows) store(r, place.row + at.row + r, place.column + at.column);
  }
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
