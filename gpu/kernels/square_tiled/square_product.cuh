#pragma once

#include "gpu/kernels/emulated/kernel_name.hpp"
#include "gpu/kernels/tiles/attention.cuh"
#include "gpu/kernels/tiles/sixteen_bit.cuh"

/// Products of matrices in global memory by square tiles, for fast memory that holds three of
/// them whatever the head dimension: a tile of C stays in registers, panels of A and B pass by.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// The first of the lane's columns of a tile of C and the first of its rows.
struct SquareLane {
  int row, column;
};

/// A lane has rows that follow one another and every `kWidth`-th column of the tile of C.
template <int kSideOfTile>
struct SquareTile {
  static constexpr int kSide = kSideOfTile, kStride = kSide + 1;
  static constexpr int kLanes = kSide < 32 ? 32 : 4 * kSide;
  static constexpr int kWidth = kSide < 32 ? kSide : 32;  // neighbouring lanes that share rows
  static constexpr int kColumns = kSide / kWidth, kRows = kSide * kWidth / kLanes;
  static constexpr int kPanels = 2 * kSide * kStride;  // floats
  /// Blocks that share a multiprocessor's 65536 registers, 128 a lane: left to itself the compiler
  /// takes twice as many, with fewer it keeps some in local memory.
  static constexpr int kBlocks = 65536 / (128 * kLanes);
  static_assert(kRows * kColumns * kLanes == kSide * kSide);

  static std::string name() { return kernel_name("SquareTile", kSide); }

  /// Element in memory of the matrices that are given, and of those that are made of them.
  using Element = float;

  /// A panel has so many words in a row, each made of the element or elements that it holds.
  static constexpr int kPanelWords = kSide;
  template <class Load>
  __device__ static void put(float* panel, int row, int word, const Load& load) {
    panel[row * kStride + word] = load(word);
  }
  __device__ static float get(const float* panel, int row, int column) {
    return panel[row * kStride + column];
  }

  /// A product of panels one after another.
  struct Products {
    /// sums(r, c) += row r of the lane of A times the lane's column c of B, `depth` deep; or once
    /// they are finished.
    __device__ void add(const float* A, const float* B, int depth, float (&sums)[kRows][kColumns]) {
      const SquareLane at = lane();
      for (int k = 0; k < depth; ++k) {
        ATTEST_UNROLL
        for (int c = 0; c < kColumns; ++c) {
          const float x = B[k * kStride + at.column + c * kWidth];
          ATTEST_UNROLL
          for (int r = 0; r < kRows; ++r) sums[r][c] += A[(at.row + r) * kStride + k] * x;
        }
      }
    }
    /// After the last; panels are overwritten.
    __device__ void finish(float*, float (&)[kRows][kColumns]) {}
  };

  __device__ static SquareLane lane() {
    const int number = static_cast<int>(threadIdx.x);
    return {number / kWidth * kRows, number % kWidth};
  }
};

template <class Tile>
using SquareSums = float[Tile::kRows][Tile::kColumns];

/// Over the lanes that share rows, the same in all of them.
template <class Tile>
__device__ float row_max(float value) {
  return simt::butterfly_max(value, Tile::kWidth);
}
template <class Tile>
__device__ float row_sum(float value) {
  return simt::butterfly_sum(value, Tile::kWidth);
}

/// Element (i, j) lies at origin + i row + j column.
template <class Pointer>
struct MatrixView {
  Pointer data;
  std::int64_t origin = 0, row = 0, column = 0;

  __device__ std::int64_t at(std::int64_t i, std::int64_t j) const {
    return origin + i * row + j * column;
  }
  __host__ __device__ MatrixView transposed() const { return {data, origin, column, row}; }
  /// Neighbouring lanes take neighbouring words.
  __device__ bool rows_adjoin() const { return row < column; }
  template <class Mem>
  __device__ float load(Mem& mem, std::int64_t i, std::int64_t j) const {
    return to_float(mem.load(data, at(i, j)));
  }
};

/// A tile of C: rows row .. row + rows - 1, columns likewise.
struct SquarePlace {
  std::int64_t row, column;
  int rows, columns;
};

template <class Tile>
__device__ int tile_extent(std::int64_t first, std::int64_t end) {
  return static_cast<int>(end - first < Tile::kSide ? end - first : Tile::kSide);
}

template <class Tile>
__device__ SquareLane square_lane() {
  return Tile::lane();
}

/// rows x columns elements from (i, j) on; zeros fill the panel.
template <class Tile, class Mem, class Matrix>
__device__ void load_panel(Mem& mem, const Matrix& matrix, std::int64_t i, std::int64_t j, int rows,
                           int columns, float* panel) {
  constexpr int kSide = Tile::kSide, kWords = Tile::kPanelWords;
  for (int k = static_cast<int>(threadIdx.x); k < kSide * kWords; k += Tile::kLanes) {
    const int row = matrix.rows_adjoin() ? k % kSide : k / kWords,
              word = matrix.rows_adjoin() ? k / kSide : k % kWords;
    Tile::put(panel, row, word, [&](int column) {
      return row < rows && column < columns ? matrix.load(mem, i + row, j + column) : 0;
    });
  }
}

/// Nothing is done with the panels beside the product.
struct PanelsPass {
  __device__ void operator()(const float*, int) const {}
};

/// sums(r, c) += row r of the lane of A times the lane's column c of B, over the inner extent; each
/// panel of A and its depth is shown to `see`.
template <class Tile, class Mem, class A, class B, class See = PanelsPass>
__device__ void add_product(Mem& mem, const A& a, const B& b, const SquarePlace& place,
                            std::int64_t inner, float* panels, SquareSums<Tile>& sums,
                            const See& see = {}) {
  float* const A_panel = panels;
  float* const B_panel = panels + Tile::kPanels / 2;
  typename Tile::Products products;
  for (std::int64_t l = 0; l < inner; l += Tile::kSide) {
    const int depth = tile_extent<Tile>(l, inner);
    __syncthreads();  // the panels before are no longer read
    load_panel<Tile>(mem, a, place.row, l, place.rows, depth, A_panel);
    load_panel<Tile>(mem, b, l, place.column, depth, place.columns, B_panel);
    __syncthreads();
    products.add(A_panel, B_panel, depth, sums);
    see(A_panel, depth);
  }
  products.finish(panels, sums);
}

/// The tile's element (i, j) becomes make(i, j, sum) where it exists, else `beyond`, one after
/// another in the panels: all at once in registers they would need more than there are.
template <class Tile, class Make>
__device__ void map_elements(const SquarePlace& place, SquareSums<Tile>& sums, float* panels,
                             float beyond, const Make& make) {
  const SquareLane at = square_lane<Tile>();
  float* const mine = panels + at.row * Tile::kStride + at.column;
  __syncthreads();  // the panels are no longer read
  ATTEST_UNROLL
  for (int r = 0; r < Tile::kRows; ++r) {
    ATTEST_UNROLL
    for (int c = 0; c < Tile::kColumns; ++c)
      mine[r * Tile::kStride + c * Tile::kWidth] = sums[r][c];
  }
  ATTEST_ROLLED
  for (int k = 0; k < Tile::kRows * Tile::kColumns; ++k) {
    const int r = k / Tile::kColumns, c = k % Tile::kColumns * Tile::kWidth;
    const int row = at.row + r, column = at.column + c;
    float& element = mine[r * Tile::kStride + c];
    element = row < place.rows && column < place.columns
                  ? make(place.row + row, place.column + column, element)
                  : beyond;
  }
  ATTEST_UNROLL
  for (int r = 0; r < Tile::kRows; ++r) {
    ATTEST_UNROLL
    for (int c = 0; c < Tile::kColumns; ++c)
      sums[r][c] = mine[r * Tile::kStride + c * Tile::kWidth];
  }
}

/// use(i, j, sum) for each element of the tile that exists.
template <class Tile, class Use>
__device__ void for_elements(const SquarePlace& place, SquareSums<Tile>& sums, float* panels,
                             const Use& use) {
  map_elements<Tile>(place, sums, panels, 0, [&](std::int64_t i, std::int64_t j, float sum) {
    use(i, j, sum);
    return sum;
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
