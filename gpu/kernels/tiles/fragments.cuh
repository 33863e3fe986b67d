#pragma once

#include "gpu/kernels/emulated/kernel_name.hpp"
#include "gpu/kernels/tiles/pair_rows.cuh"
#include "gpu/simt/tensor_core/tensor_core.cuh"

/// Products of a warp on tensor cores: 16 rows of sums in float32, factors of 16 bits in shared
/// memory (pair_rows.cuh) or in registers. Sums are fragments d of
/// gpu/simt/tensor_core/tensor_core.cuh, eight columns each: word w of a lane lies in row
/// fragment_row(w), column fragment_column(w).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// The instructions of a type.
template <class T>
struct TensorCore;

template <>
struct TensorCore<Bf16> {
  __device__ static void add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    simt::mma_m16n8k16_bf16(d, a, b, d);
  }
  __device__ static unsigned pair(float low, float high) { return simt::cvt_bf16x2(high, low); }
};

template <>
struct TensorCore<F16> {
  __device__ static void add(float (&d)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    simt::mma_m16n8k16_f16(d, a, b, d);
  }
  __device__ static unsigned pair(float low, float high) { return simt::cvt_f16x2(high, low); }
};

__device__ inline int fragment_row(int word) { return lane_in_warp() / 4 + word / 2 * 8; }
__device__ inline int fragment_column(int word) { return lane_in_warp() % 4 * 2 + word % 2; }

/// Returns the maximum, or the sum, over the four lanes that share a row of a fragment.
__device__ inline float row_max(float value) {
  value = fmaxf(value, __shfl_xor_sync(~0U, value, 1));
  return fmaxf(value, __shfl_xor_sync(~0U, value, 2));
}
__device__ inline float row_sum(float value) {
  value += __shfl_xor_sync(~0U, value, 1);
  return value + __shfl_xor_sync(~0U, value, 2);
}

/// 16 rows and the 16 columns from `column` on, as fragment a.
__device__ inline void load_left(unsigned (&a)[4], const unsigned* rows, int stride, int column) {
  const int lane = lane_in_warp();
  simt::ldmatrix_x4(a, rows + lane % 16 * stride + column / 2 + lane / 16 * 4);
}

/// 16 columns from `column` on of 16 rows, transposed, as fragment a.
__device__ inline void load_left_transposed(unsigned (&a)[4], const unsigned* rows, int stride,
                                            int column) {
  const int lane = lane_in_warp();
  simt::ldmatrix_x4_trans(
      a, rows + (lane / 16 * 8 + lane % 8) * stride + column / 2 + lane / 8 % 2 * 4);
}

/// 16 columns of 16 rows that are the columns of b: fragments of rows 0-7, then of rows 8-15.
__device__ inline void load_transpose(unsigned (&b)[4], const unsigned* rows, int stride,
                                      int column) {
  const int lane = lane_in_warp();
  simt::ldmatrix_x4(b, rows + (lane / 16 * 8 + lane % 8) * stride + column / 2 + lane / 8 % 2 * 4);
}

/// The same of 16 rows that are the rows of b: fragments of columns 0-7, then of columns 8-15.
__device__ inline void load_right(unsigned (&b)[4], const unsigned* rows, int stride, int column) {
  const int lane = lane_in_warp();
  simt::ldmatrix_x4_trans(b, rows + lane % 16 * stride + column / 2 + lane / 16 * 4);
}

/// sums (16, 16) += a b, b as load_transpose and load_right have it.
template <class T>
__device__ void add_two(float (&first)[4], float (&second)[4], const unsigned (&a)[4],
                        const unsigned (&b)[4]) {
  const unsigned left[2] = {b[0], b[1]}, right[2] = {b[2], b[3]};
  TensorCore<T>::add(first, a, left);
  TensorCore<T>::add(second, a, right);
}

template <int kCount>
__device__ void clear_fragments(float (&sums)[kCount][4]) {
  ATTEST_UNROLL
  for (int k = 0; k < kCount; ++k) {
    ATTEST_UNROLL
    for (int w = 0; w < 4; ++w) sums[k][w] = 0;
  }
}

/// 64 rows of a block stay, 16 for each of four warps, while 32 pass by at once. `kGroups` such
/// fours of warps form the same products of both and share the columns of what they sum: a lane has
/// `kColumns` / 8 fragments of each sum.
template <int kColumnsOfWarp, int kGroupsOfWarps>
struct TensorTile {
  static constexpr int kResident = 64, kPassing = 32, kStages = 2;
  static constexpr int kColumns = kColumnsOfWarp, kGroups = kGroupsOfWarps;
  static constexpr int kRowWarps = kResident / 16, kLanes = 32 * kRowWarps * kGroups;
  static constexpr int kMostColumns = kColumns * kGroups;
  static constexpr int kPairs = kPassing / 8, kSums = kColumns / 8;  // fragments of a lane
  static std::string name() { return kernel_name("TensorTile", kColumns, kGroups); }

  // Common parts of the steps of a kernel. A test's tile replaces one part by a wrong one.

  /// The latest copies of all lanes have arrived, and no lane is at the tile before.
  __device__ static void await_tile() {
    simt::cp_async_wait<0>();
    __syncthreads();
  }
  /// Waits until what all lanes have left of dS has arrived.
  __device__ static void await_pair_gradients() { __syncthreads(); }
  __device__ static int next_stage(int stage) { return (stage + 1) % kStages; }
  /// Passing rows as the columns of b.
  __device__ static void load_passing(unsigned (&b)[4], const unsigned* rows, int stride,
                                      int column) {
    load_transpose(b, rows, stride, column);
  }
  /// Columns of resident rows as the rows of a.
  __device__ static void load_columns(unsigned (&a)[4], const unsigned* rows, int stride,
                                      int column) {
    load_left_transposed(a, rows, stride, column);
  }
  /// Tells whether a passing row is among those from `begin` to before `end`.
  __device__ static bool sees(int begin, int end, int row) { return begin <= row && row < end; }
  /// Two weights as factors of the second product.
  template <class T>
  __device__ static unsigned weights(float low, float high) {
    return TensorCore<T>::pair(low, high);
  }
};

/// use(tile) with a tile for so many columns, at most those of WidestTensorTile.
using WidestTensorTile = TensorTile<128, 2>;
template <class Use>
auto with_tensor_tile(int columns, const Use& use) {
  if (columns <= 32) return use(TensorTile<32, 1>{});
  if (columns <= 64) return use(TensorTile<64, 1>{});
  if (columns <= 128) return use(TensorTile<128, 1>{});
  return use(WidestTensorTile{});
}

/// The first resident row of the warp, and the first column of its sums.
template <class Tile>
__device__ int warp_row() {
  return warp_in_block() % Tile::kRowWarps * 16;
}
template <class Tile>
__device__ int warp_column() {
  return warp_in_block() / Tile::kRowWarps * Tile::kColumns;
}

/// S (16, passing) += A B^T of so many columns, B the passing rows; A(column, a) gives fragment a
/// of the warp's rows from a column on, a multiple of 16.
template <class Tile, class T, class Left>
__device__ void add_pair_products(const Left& A, const unsigned* B, int columns,
                                  float (&S)[Tile::kPairs][4]) {
  const int stride = pair_stride(columns);
  ATTEST_UNROLL
  for (int column = 0; column < Tile::kMostColumns; column += 16) {
    if (column >= columns) break;
    unsigned a[4];
    A(column, a);
    ATTEST_UNROLL
    for (int k = 0; k < Tile::kPairs; k += 2) {
      unsigned b[4];
      Tile::load_passing(b, B + 8 * k * stride, stride, column);
      add_two<T>(S[k], S[k + 1], a, b);
    }
  }
}

/// sums (16, columns of the warp) += W X, W (16, passing) rounded to T, X the passing rows.
template <class Tile, class T>
__device__ void add_weighted_passing(const float (&W)[Tile::kPairs][4], const unsigned* X,
                                     int columns, float (&sums)[Tile::kSums][4]) {
  const int stride = pair_stride(columns), first = warp_column<Tile>();
  ATTEST_UNROLL
  for (int k = 0; k < Tile::kPairs; k += 2) {
    const unsigned a[4] = {Tile::template weights<T>(W[k][0], W[k][1]),
                           Tile::template weights<T>(W[k][2], W[k][3]),
                           Tile::template weights<T>(W[k + 1][0], W[k + 1][1]),
                           Tile::template weights<T>(W[k + 1][2], W[k + 1][3])};
    ATTEST_UNROLL
    for (int c = 0; c < Tile::kSums; c += 2) {
      if (first + 8 * c >= columns) break;
      unsigned b[4];
      load_right(b, X + 8 * k * stride, stride, first + 8 * c);
      add_two<T>(sums[c], sums[c + 1], a, b);
    }
  }
}

/// The warp's sums, times a factor for each of a lane's two rows, into resident rows of shared
/// memory that are no longer read.
template <class Tile, class T>
__device__ void leave_sums(const float (&sums)[Tile::kSums][4], float upper, float lower,
                           int columns, unsigned* shared, int stride) {
  const int first = warp_column<Tile>();
  ATTEST_UNROLL
  for (int c = 0; c < Tile::kSums; ++c) {
    const int column = first + 8 * c + fragment_column(0);
    if (first + 8 * c >= columns) break;
    unsigned* const words = shared + (warp_row<Tile>() + fragment_row(0)) * stride + column / 2;
    words[0] = TensorCore<T>::pair(upper * sums[c][0], upper * sums[c][1]);
    words[8 * stride] = TensorCore<T>::pair(lower * sums[c][2], lower * sums[c][3]);
  }
}

/// The first key from `key` on, a multiple of the passing rows, whose tile holds a visible pair;
/// the band's end or more when there is none.
template <class Tile, class Mem>
__device__ std::int64_t visible_keys(Mem& mem, const AttentionShape& shape,
                                     const MaskArguments<Mem>& mask, const Sequence& sequence,
                                     TileRows queries, KeyBand band, std::int64_t key) {
  while (mask.boolean && key < band.end &&
         !tile_visible(mem, shape, mask, sequence, queries,
                       rows_from(key, sequence.k_length, Tile::kPassing))) {
    key += Tile::kPassing;
  }
  return key;
}

/// Part of the passing keys from `key` on that a query sees: positions begin .. end-1.
struct PassingBand {
  int begin = 0, end = 0;
};

template <class Tile>
__device__ PassingBand passing_band(KeyBand band, std::int64_t key) {
  const auto within = [key](std::int64_t position) {
    const std::int64_t from_first = position - key;
    if (from_first < 0) return 0;
    return from_first < Tile::kPassing ? static_cast<int>(from_first) : Tile::kPassing;
  };
  return {within(band.begin), within(band.end)};
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
