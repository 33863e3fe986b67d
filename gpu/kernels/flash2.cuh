#pragma once

#include "gpu/kernels/columns.hpp"
#include "gpu/kernels/grid.hpp"
#include "gpu/kernels/row_sums.cuh"

/// FlashAttention-2 forward in float32, of tensors in float32 or 16 bits: a block of queries stays
/// with its sums, blocks of keys pass by, K leaves shared memory before V comes.
///
/// Grid:   one block for each 32 queries of a (batch, head), all in x; 8 warps of 4 queries each.
/// Shared: Q (32, head_dim_qk), K or V (32, larger head dimension), P (32, 32), rows of odd length.
/// Words:  those of the schedule flash2:bq=32,bk=32.  [gpu/kernels/schedule_words_test]
/// Source: Dao 2023, Algorithm 1.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct Flash2 {
  static constexpr int kBlockQ = 32, kBlockK = 32, kLanes = 256;
  static constexpr int kRows = kBlockQ / (kLanes / 32);  // of a warp

  __host__ __device__ static std::int64_t shared_floats(int head_dim_qk, int head_dim_v) {
    const int larger = head_dim_qk > head_dim_v ? head_dim_qk : head_dim_v;
    return std::int64_t{kBlockQ} * odd_stride(head_dim_qk) +
           std::int64_t{kBlockK} * odd_stride(larger) + std::int64_t{kBlockQ} * kBlockK;
  }
  static BlockLine line(const AttentionShape& shape) {
    return {blocks_for(shape.seqlen_q, kBlockQ, shape.num_heads_q, shape.batch), kLanes,
            bytes_of_floats(shared_floats(shape.head_dim_qk, shape.head_dim_v))};
  }
};

/// Takes the keys of `band`, tile by tile from its beginning rounded down to a tile, into the sums
/// of a block's queries; tiles without a visible pair are not loaded.
template <int kColumns, class Mem, class T>
__device__ void attend(Mem& mem, const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                       KeyBand band, float* shared, RowSums<Flash2::kRows, kColumns>& sums) {
  constexpr int kBlockQ = Flash2::kBlockQ, kBlockK = Flash2::kBlockK, kRows = Flash2::kRows;
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_q = odd_stride(dk), stride_v = odd_stride(dv);
  float* const Q = shared;
  float* const KV = Q + kBlockQ * stride_q;
  float* const P = KV + kBlockK * odd_stride(dk > dv ? dk : dv);
  const int first_row = warp_in_block() * kRows;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, block.head) : 0;
  const std::int64_t origin_k = block.key_origin(a.k), origin_v = block.key_origin(a.v);

  bool loaded = false;
  for (std::int64_t key = band.first_tile(kBlockK); key < band.end; key += kBlockK) {
    const TileRows keys = rows_from(key, block.sequence.k_length, kBlockK);
    if (a.mask.boolean && !tile_visible(mem, a.shape, a.mask, block.sequence, block.rows, keys)) {
      continue;
    }
    if (!loaded) {
      load_tile<kBlockQ>(mem, a.Q, a.q, block.origin(a.q), block.rows.count, dk, Q, stride_q);
    }
    loaded = true;
    __syncthreads();  // V of the tile before is no longer read
    load_tile<kBlockK>(mem, a.K, a.k, origin_k + key * a.k.row, keys.count, dk, KV, stride_q);
    __syncthreads();
    float S[kRows] = {};
    add_row_products(Q + first_row * stride_q, stride_q, KV + lane_in_warp() * stride_q, dk, S);
    finish_scores(mem, a, block, keys, slope, S);
    sums.take_scores(S);
    for (int r = 0; r < kRows; ++r) P[(first_row + r) * kBlockK + lane_in_warp()] = S[r];
    __syncthreads();  // K is no longer read
    load_rows(mem, a.V, a.v, origin_v + key * a.v.row, keys.count, dv, KV, stride_v);
    __syncthreads();
    add_weighted_rows(P + first_row * kBlockK, kBlockK, KV, stride_v, keys.count, dv, sums.O);
  }
}

/// `kColumns` times 32 columns of V, at least head_dim_v, are held in registers.
template <int kColumns, class Mem, class T = float>
__global__ void __launch_bounds__(Flash2::kLanes) flash2_forward(ForwardArguments<Mem, T> a) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, Flash2::kBlockQ);
  if (block.rows.count > 0) {
    RowSums<Flash2::kRows, kColumns> sums;
    attend(mem, a, block, band_of_rows(block.sequence, a.mask, block.rows), shared, sums);
    sums.template store_O<T>(mem, block, a.shape.head_dim_v, a.O, a.o);
    if (a.LSE) sums.store_LSE(mem, block, a.LSE, a.lse);
  }
  mem.flush();
}

/// launch(line, kernel, arguments...) for its one launch.
///
/// Requires: head_dim_v at most kMostColumns.
template <class Mem, class T, class Launch>
void flash2_launches(const ForwardArguments<Mem, T>& a, Launch&& launch) {
  with_columns(a.shape.head_dim_v, [&]<int kColumns>() {
    launch(Flash2::line(a.shape), flash2_forward<kColumns, Mem, T>, a);
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
