#pragma once

#include "gpu/kernels/square_tiled/square_product.cuh"
#include "gpu/kernels/tiles/fragments.cuh"

/// Square tiles whose products are those of tensor cores: panels of elements of 16 bits, to which
/// words of float32 in memory are rounded on their way; sums in float32.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// A product of panels one after another: a warp has 16 rows and some columns of the tile of C.
template <class Tile>
class FragmentProducts {
 public:
  __device__ FragmentProducts() { clear_fragments(warp_); }

  template <class Sums>
  __device__ void add(const float* A, const float* B, int depth, Sums&) {
    ATTEST_UNROLL
    for (int k = 0; k < Tile::kSide; k += 16) {
      if (k >= depth) break;
      unsigned a[4];
      load_left(a, Tile::words(A) + row() * Tile::kPairStride, Tile::kPairStride, k);
      ATTEST_UNROLL
      for (int c = 0; c < kSums; c += 2) {
        unsigned b[4];
        Tile::load_factors(b, Tile::words(B) + k * Tile::kPairStride, column() + 8 * c);
        add_two<typename Tile::Element>(warp_[c], warp_[c + 1], a, b);
      }
    }
  }

  /// Through the panels, to the lanes that have the elements.
  __device__ void finish(float* panels, SquareSums<Tile>& sums) {
    __syncthreads();  // the panels are no longer read
    ATTEST_UNROLL
    for (int c = 0; c < kSums; ++c) {
      ATTEST_UNROLL
      for (int w = 0; w < 4; ++w) {
        panels[(row() + fragment_row(w)) * Tile::kStride + column() + 8 * c + fragment_column(w)] =
            warp_[c][w];
      }
    }
    Tile::await_sums();
    const SquareLane at = Tile::lane();
    ATTEST_UNROLL
    for (int r = 0; r < Tile::kRows; ++r) {
      ATTEST_UNROLL
      for (int c = 0; c < Tile::kColumns; ++c) {
        sums[r][c] += panels[(at.row + r) * Tile::kStride + at.column + c * Tile::kWidth];
      }
    }
  }

 private:
  static constexpr int kRowWarps = Tile::kSide / 16, kColumnWarps = Tile::kLanes / 32 / kRowWarps;
  static constexpr int kWarpColumns = Tile::kSide / kColumnWarps, kSums = kWarpColumns / 8;
  static_assert(kWarpColumns % 16 == 0);

  __device__ static int row() { return warp_in_block() % kRowWarps * 16; }
  __device__ static int column() { return warp_in_block() / kRowWarps * kWarpColumns; }

  float warp_[kSums][4];
};

/// Lanes have the elements of the tile of C that SquareTile gives them.
template <int kSideOfTile, class T>
struct SquareTensorTile : SquareTile<kSideOfTile> {
  static constexpr int kSide = kSideOfTile;
  static constexpr int kPanelWords = kSide / 2, kPairStride = kPanelWords + 4;
  static constexpr int kPanels = 2 * kSide * kPairStride;  // words
  static_assert(kPanels >= kSide * SquareTile<kSide>::kStride);

  static std::string name() { return kernel_name("SquareTensorTile", kSide, name_of_type<T>()); }

  using Element = T;
  using Products = FragmentProducts<SquareTensorTile>;

  __device__ static unsigned* words(float* panel) { return reinterpret_cast<unsigned*>(panel); }
  __device__ static const unsigned* words(const float* panel) {
    return reinterpret_cast<const unsigned*>(panel);
  }
  template <class Load>
  __device__ static void put(float* panel, int row, int word, const Load& load) {
    words(panel)[row * kPairStride + word] =
        TensorCore<T>::pair(load(2 * word), load(2 * word + 1));
  }
  __device__ static float get(const float* panel, int row, int column) {
    return to_float(element_of<T>(words(panel) + row * kPairStride, column));
  }

  // A test's tile replaces one of them by a wrong one.

  /// Waits until what all lanes have left of their sums has arrived.
  __device__ static void await_sums() { __syncthreads(); }
  /// Rows of a panel as those of b.
  __device__ static void load_factors(unsigned (&b)[4], const unsigned* rows, int column) {
    load_right(b, rows, kPairStride, column);
  }
};

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
