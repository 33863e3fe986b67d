#pragma once

#include "gpu/kernels/tiles/tile.cuh"
#include "gpu/simt/async/async_copy.cuh"

/// Rows of 16-bit elements in shared memory, two to a word, for tensor cores. A row ends with zeros
/// to a multiple of 16 columns, as wide as a product is deep; rows lie an odd number of 16 bytes
/// apart, so that the eight that ldmatrix reads at once meet all banks.
/// [gpu/kernels/tensor_core_test "eight rows meet all banks"]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

__host__ __device__ inline int padded_columns(int columns) { return (columns + 15) / 16 * 16; }

/// Words from one row to the next.
__host__ __device__ inline int pair_stride(int columns) { return padded_columns(columns) / 2 + 4; }

/// Tells whether rows can be copied 16 bytes at a time, the first element of the tensor lying at a
/// multiple of that.
__device__ inline bool rows_in_16_bytes(const Strides& strides, int columns) {
  return strides.column == 1 && (columns | strides.row | strides.head | strides.batch) % 8 == 0;
}

/// `count` rows of one head, then zeros to the tile's end. They have arrived when the copies of all
/// lanes have, and a barrier has been met.
template <int kTileRows, class Mem, class Pointer>
__device__ void copy_rows(Mem& mem, const Pointer& tensor, const Strides& strides,
                          std::int64_t origin, int count, int columns, unsigned* shared) {
  const int stride = pair_stride(columns);
  const int first = static_cast<int>(threadIdx.x), lanes = static_cast<int>(blockDim.x);
  if (rows_in_16_bytes(strides, columns)) {
    const int pieces = padded_columns(columns) / 8;
    for (int i = first; i < kTileRows * pieces; i += lanes) {
      const int row = i / pieces, column = i % pieces * 8;
      simt::cp_async_zfill_16(shared + row * stride + column / 2, mem, tensor,
                              origin + row * strides.row + column, row < count && column < columns);
    }
    return;
  }
  const int pairs = padded_columns(columns) / 2;
  for (int i = first; i < kTileRows * pairs; i += lanes) {
    const int row = i / pairs, column = i % pairs * 2;
    unsigned word = 0;
    for (int part = 0; part < 2; ++part) {
      if (row >= count || column + part >= columns) continue;
      const std::int64_t place = origin + row * strides.row + (column + part) * strides.column;
      word |= static_cast<unsigned>(mem.load(tensor, place).bits) << 16 * part;
    }
    shared[row * stride + column / 2] = word;
  }
}

/// One element of a row in shared memory.
template <class T>
__device__ T element_of(const unsigned* row, int column) {
  return {static_cast<std::uint16_t>(row[column / 2] >> column % 2 * 16)};
}

/// `count` rows of one head from shared memory, by all lanes of the block.
template <class T, class Mem>
__device__ void store_pairs(Mem& mem, typename Mem::template Out<T> tensor, const Strides& strides,
                            std::int64_t origin, int count, int columns, const unsigned* shared,
                            int stride) {
  for (int i = static_cast<int>(threadIdx.x); i < count * columns;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / columns, column = i % columns;
    mem.store(tensor, origin + row * strides.row + column * strides.column,
              element_of<T>(shared + row * stride, column));
  }
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
