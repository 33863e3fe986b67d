#pragma once

#include "gpu/kernels/attention.cuh"

/// Tiles of queries and keys in shared memory.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Floats from one row of a tile to the next: odd, so that the lanes of a warp, each in a row of
/// its own, meet all banks.
__host__ __device__ inline int odd_stride(int columns) { return columns | 1; }

/// Rows of a tile.
struct TileRows {
  std::int64_t first;
  int count;
};

/// The (batch, head) of a block and the first of its rows: all blocks lie in x, for a grid has more
/// of them there than heads and batch entries may be.
struct BlockPlace {
  std::int64_t batch, head, first;
};

__device__ inline BlockPlace place_of_block(std::int64_t number, std::int64_t rows, int block_rows,
                                            std::int64_t heads) {
  const std::int64_t blocks = (rows + block_rows - 1) / block_rows;
  return {number / blocks / heads, number / blocks % heads, number % blocks * block_rows};
}

/// `count` rows of one head into shared memory, by all lanes of the block.
template <class Mem>
__device__ void load_rows(Mem& mem, typename Mem::template In<float> tensor, const Strides& strides,
                          std::int64_t origin, int count, int columns, float* shared, int stride) {
  for (int i = static_cast<int>(threadIdx.x); i < count * columns;
       i += static_cast<int>(blockDim.x)) {
    const int row = i / columns, column = i % columns;
    shared[row * stride + column] =
        mem.load(tensor, origin + row * strides.row + column * strides.column);
  }
}

/// Whether query i sees key j.
template <class Mem>
__device__ bool pair_visible(Mem& mem, const AttentionShape& shape, const MaskArguments<Mem>& mask,
                             const Sequence& sequence, std::int64_t i, std::int64_t j) {
  return band_of(sequence, mask, i).holds(j) &&
         (!mask.boolean || mem.load(mask.boolean, i * shape.seqlen_k + j) != 0);
}

/// Whether any pair of a tile is visible; the same answer for all lanes, which all ask.
template <class Mem>
__device__ bool tile_visible(Mem& mem, const AttentionShape& shape, const MaskArguments<Mem>& mask,
                             const Sequence& sequence, TileRows queries, TileRows keys) {
  int any = 0;
  for (int i = static_cast<int>(threadIdx.x); i < queries.count * keys.count;
       i += static_cast<int>(blockDim.x)) {
    if (pair_visible(mem, shape, mask, sequence, queries.first + i / keys.count,
                     keys.first + i % keys.count)) {
      any = 1;
    }
  }
  return __syncthreads_or(any) != 0;
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
