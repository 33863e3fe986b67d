#pragma once

#include "gpu/kernels/tiles/attention.cuh"
#include "gpu/kernels/tiles/sixteen_bit.cuh"

/// Tiles of queries and keys in shared memory, and the products of a block's warps with them: a
/// warp has some rows of the tile, a lane a key or every 32nd column.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Floats from one row of a tile to the next: odd, so that the lanes of a warp, each in a row of
/// its own, meet all banks.
__host__ __device__ inline int odd_stride(int columns) { return columns | 1; }

__host__ __device__ inline int widest_head(const AttentionShape& shape) {
  return shape.head_dim_qk > shape.head_dim_v ? shape.head_dim_qk : shape.head_dim_v;
}

/// How many blocks cover an extent.
__host__ __device__ inline std::int64_t tiles_of(std::int64_t extent, std::int64_t block) {
  return (extent + block - 1) / block;
}

/// The rows of the block that begins at `first`, before `end`.
__device__ inline TileRows rows_from(std::int64_t first, std::int64_t end, int block) {
  return {first, static_cast<int>(end - first < block ? end - first : block)};
}

/// The (batch, head) of a block and the first of its rows: all blocks lie in x, for a grid has more
/// of them there than heads and batch entries may be.
struct BlockPlace {
  std::int64_t batch = 0, head = 0, first = 0;
};

__device__ inline BlockPlace place_of_block(std::int64_t number, std::int64_t rows, int block_rows,
                                            std::int64_t heads) {
  const std::int64_t blocks = tiles_of(rows, block_rows);
  return {number / blocks / heads, number / blocks % heads, number % blocks * block_rows};
}

/// The queries of a block, and where they belong.
struct QueryBlock {
  Sequence sequence;
  std::int64_t entry = 0;  // of the batch, packed or not
  std::int64_t head = 0, head_kv = 0;
  TileRows rows;  // none when the sequence ends before

  __device__ std::int64_t origin(const Strides& strides) const {
    return row_origin(strides, sequence, head, sequence.q_begin + rows.first);
  }
  /// Returns the place of the sequence's first key.
  __device__ std::int64_t key_origin(const Strides& strides) const {
    return row_origin(strides, sequence, head_kv, sequence.k_begin);
  }
};

template <class Mem>
__device__ QueryBlock query_block(Mem& mem, const AttentionShape& shape,
                                  const MaskArguments<Mem>& mask, std::int64_t number,
                                  int block_rows) {
  const BlockPlace place = place_of_block(number, shape.seqlen_q, block_rows, shape.num_heads_q);
  QueryBlock block;
  block.sequence = sequence_of(mem, shape, mask, place.batch);
  block.entry = place.batch;
  block.head = place.head;
  block.head_kv = place.head / (shape.num_heads_q / shape.num_heads_kv);
  if (place.first < block.sequence.q_length) {
    block.rows = rows_from(place.first, block.sequence.q_length, block_rows);
  }
  return block;
}

/// Returns the keys that window and lengths leave to any query of a block: both ends of the band
/// grow with the query, up to the last that exists.
template <class Mem>
__device__ KeyBand band_of_rows(const Sequence& sequence, const MaskArguments<Mem>& mask,
                                TileRows rows) {
  const std::int64_t end = rows.first + rows.count;
  const std::int64_t last = (end < sequence.queries ? end : sequence.queries) - 1;
  if (last < rows.first) return {0, 0};
  return {band_of(sequence, mask, rows.first).begin, band_of(sequence, mask, last).end};
}

/// `count` rows of one head into shared memory, a row by each warp of the block.
template <class Mem, class Pointer>
__device__ void load_rows(Mem& mem, const Pointer& tensor, const Strides& strides,
                          std::int64_t origin, int count, int columns, float* shared, int stride) {
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int row = warp_in_block(); row < count; row += warps) {
    for (int column = lane_in_warp(); column < columns; column += 32) {
      shared[row * stride + column] =
          to_float(mem.load(tensor, origin + row * strides.row + column * strides.column));
    }
  }
}

/// Rows of zeros from `count` to a tile's end, so that products need not ask which rows exist.
template <int kTileRows>
__device__ void clear_rows(int count, int columns, float* shared, int stride) {
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int row = count + warp_in_block(); row < kTileRows; row += warps) {
    for (int column = lane_in_warp(); column < columns; column += 32) {
      shared[row * stride + column] = 0;
    }
  }
}

/// load_rows, then zeros to the tile's end.
template <int kTileRows, class Mem, class Pointer>
__device__ void load_tile(Mem& mem, const Pointer& tensor, const Strides& strides,
                          std::int64_t origin, int count, int columns, float* shared, int stride) {
  load_rows(mem, tensor, strides, origin, count, columns, shared, stride);
  clear_rows<kTileRows>(count, columns, shared, stride);
}

/// load_rows of keys that lie in pages; 0 takes the place of keys past the length, whose slots may
/// hold anything.
template <class Mem, class Pointer>
__device__ void load_rows_in_pages(Mem& mem, const Pointer& tensor, const Strides& strides,
                                   const PageArguments<Mem>& pages, const QueryBlock& block,
                                   TileRows keys, int columns, float* shared, int stride) {
  const int warps = static_cast<int>(blockDim.x) / 32;
  for (int row = warp_in_block(); row < keys.count; row += warps) {
    const std::int64_t key = keys.first + row, page_row = block.entry * pages.max_pages;
    if (key >= block.sequence.keys) {
      for (int column = lane_in_warp(); column < columns; column += 32) {
        shared[row * stride + column] = 0;
      }
      continue;
    }
    const std::int64_t page = mem.load(pages.table, page_row + key / pages.page_size);
    const std::int64_t origin =
        page * strides.batch + key % pages.page_size * strides.row + block.head_kv * strides.head;
    for (int column = lane_in_warp(); column < columns; column += 32) {
      shared[row * stride + column] = to_float(mem.load(tensor, origin + column * strides.column));
    }
  }
}

/// sums[r] += the inner product of row r of A with the row B.
template <int kRows>
__device__ void add_row_products(const float* A, int stride, const float* B, int columns,
                                 float (&sums)[kRows]) {
  for (int c = 0; c < columns; ++c) {
    const float b = B[c];
    for (int r = 0; r < kRows; ++r) sums[r] += A[r * stride + c] * b;
  }
}

/// The weight of a key that a row does not see; weights are exponentials, which are not below 0.
inline constexpr float kUnseen = -1;

/// sums[r][c] += the sum over k of W(r, k) X(k, 32 c + lane), of columns that exist; with
/// `kSeenAlone` without the keys of weight kUnseen, whatever X has there.
template <bool kSeenAlone = false, int kRows, int kColumns>
__device__ void add_weighted_rows(const float* W, int stride_w, const float* X, int stride_x,
                                  int count, int columns, float (&sums)[kRows][kColumns]) {
  const int lane = lane_in_warp();
  ATTEST_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    const int column = c * 32 + lane;
    if (column >= columns) continue;
    for (int k = 0; k < count; ++k) {
      const float x = X[k * stride_x + column];
      ATTEST_UNROLL
      for (int r = 0; r < kRows; ++r) {
        const float w = W[r * stride_w + k];
        if (!kSeenAlone || w != kUnseen) sums[r][c] += w * x;
      }
    }
  }
}

/// Tells whether query i sees key j.
template <class Mem>
__device__ bool pair_visible(Mem& mem, const AttentionShape& shape, const MaskArguments<Mem>& mask,
                             const Sequence& sequence, std::int64_t i, std::int64_t j) {
  return band_of(sequence, mask, i).holds(j) &&
         (!mask.boolean || mem.load(mask.boolean, i * shape.seqlen_k + j) != 0);
}

/// Tells whether any pair of a tile is visible; the same answer for all lanes, which all ask.
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

/// Products of a warp's rows of the block with the lane's key become scores, -inf where masked.
template <int kRows, class Mem, class T>
__device__ void finish_scores(Mem& mem, const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                              TileRows keys, float slope, float (&S)[kRows]) {
  const int lane = lane_in_warp();
  const std::int64_t j = keys.first + lane;
  for (int r = 0; r < kRows; ++r) {
    const int row = warp_in_block() * kRows + r;
    const std::int64_t i = block.rows.first + row;
    const bool visible = row < block.rows.count && lane < keys.count &&
                         pair_visible(mem, a.shape, a.mask, block.sequence, i, j) &&
                         shown_to_head(mem, a.mask, block.sequence, block.head, i, j);
    S[r] = visible ? score_of(S[r], a.shape, slope, i + block.sequence.shift, j).value : -INFINITY;
    if (visible) add_bias(mem, a, block.sequence, block.head, i, j, S[r]);
  }
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
