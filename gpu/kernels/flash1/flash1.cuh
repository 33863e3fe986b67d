#pragma once

#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/row_sums.cuh"

/// FlashAttention forward, float32: a block of keys stays, blocks of queries pass by with O, m and
/// l, which are read and written for every tile. O is divided by its sum after each.
///
/// Grid:   one block for each (batch, head), all in x; 8 warps of 4 queries each.
/// Shared: K (32, head_dim_qk), V (32, head_dim_v), Q (32, head_dim_qk), P (32, 32), rows of odd
///         length.
/// Words:  those of the schedule flash1:bq=32,bk=32; LSE is not an output.
///         [gpu/kernels/schedule_words_test]
/// Source: Dao et al. 2022, Algorithm 1.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct Flash1 {
  static constexpr int kBlockQ = 32, kBlockK = 32, kLanes = 256;
  static constexpr int kRows = kBlockQ / (kLanes / 32);  // of a warp

  __host__ __device__ static std::int64_t shared_floats(int head_dim_qk, int head_dim_v) {
    return std::int64_t{kBlockQ + kBlockK} * odd_stride(head_dim_qk) +
           std::int64_t{kBlockK} * odd_stride(head_dim_v) + std::int64_t{kBlockQ} * kBlockK;
  }
  static BlockLine line(const AttentionShape& shape) {
    return {shape.seqlen_q == 0 ? 0 : shape.batch * shape.num_heads_q, kLanes,
            bytes_of_floats(shared_floats(shape.head_dim_qk, shape.head_dim_v))};
  }
};

/// Largest scores and sums of exponentials, as LSE lies.
template <class Mem>
struct SavedStatistics {
  typename Mem::template Out<float> m, l;
  Strides strides;
};

/// O = 0, m = -inf, l = 0 for a warp's rows. Each word of O, m and l belongs to one lane throughout
/// the kernel, so no barrier orders its accesses.
template <class Mem>
__device__ void begin_rows(Mem& mem, const ForwardArguments<Mem>& a,
                           const SavedStatistics<Mem>& saved, const QueryBlock& block) {
  for (int r = 0; r < Flash1::kRows; ++r) {
    const int row = warp_in_block() * Flash1::kRows + r;
    if (row >= block.rows.count) continue;
    const std::int64_t origin = block.origin(a.o) + row * a.o.row;
    for (int c = lane_in_warp(); c < a.shape.head_dim_v; c += 32) {
      mem.store(a.O, origin + c * a.o.column, 0.0F);
    }
    if (lane_in_warp() == 0) {
      const std::int64_t place = block.origin(saved.strides) + row * saved.strides.row;
      mem.store(saved.m, place, -INFINITY);
      mem.store(saved.l, place, 0.0F);
    }
  }
}

/// Takes a tile of scores into the statistics of a warp's rows. S becomes the weights of the tile's
/// values and `rescale` the factor of O. Rows that see no key of the tile keep their O to the bit.
template <class Mem>
__device__ void update_rows(Mem& mem, const SavedStatistics<Mem>& saved, const QueryBlock& block,
                            float (&S)[Flash1::kRows], float (&rescale)[Flash1::kRows]) {
  for (int r = 0; r < Flash1::kRows; ++r) {
    const int row = warp_in_block() * Flash1::kRows + r;
    const bool owner = lane_in_warp() == 0 && row < block.rows.count;
    const std::int64_t place = block.origin(saved.strides) + row * saved.strides.row;
    RowStatistics<1> rows;
    if (owner) {
      rows.m[0] = mem.load(saved.m, place);
      rows.l[0] = mem.load(saved.l, place);
    }
    rows.m[0] = __shfl_sync(~0U, rows.m[0], 0);
    rows.l[0] = __shfl_sync(~0U, rows.l[0], 0);
    const float before = rows.l[0];
    const bool any = __any_sync(~0U, S[r] != -INFINITY ? 1 : 0) != 0;  // a NaN is one
    const float factor = rows.take(0, S[r]);
    rescale[r] = any ? before * factor / rows.l[0] : 1;
    if (any) S[r] /= rows.l[0];
    if (owner) {
      mem.store(saved.m, place, rows.m[0]);
      mem.store(saved.l, place, rows.l[0]);
    }
  }
}

/// O = rescale O + P V for a warp's rows, one word at a time.
template <class Mem>
__device__ void update_O(Mem& mem, const ForwardArguments<Mem>& a, const QueryBlock& block,
                         const float* P, const float* V, int keys,
                         const float (&rescale)[Flash1::kRows]) {
  const int dv = a.shape.head_dim_v, stride_v = odd_stride(dv);
  const int first_row = warp_in_block() * Flash1::kRows;
  for (int column = lane_in_warp(); column < dv; column += 32) {
    const std::int64_t origin =
        block.origin(a.o) + first_row * a.o.row + static_cast<std::int64_t>(column) * a.o.column;
    float O[Flash1::kRows];
    for (int r = 0; r < Flash1::kRows; ++r) {
      const bool exists = first_row + r < block.rows.count;
      O[r] = exists ? rescale[r] * mem.load(a.O, origin + r * a.o.row) : 0;
    }
    for (int j = 0; j < keys; ++j) {
      const float v = V[j * stride_v + column];
      for (int r = 0; r < Flash1::kRows; ++r) O[r] += P[(first_row + r) * Flash1::kBlockK + j] * v;
    }
    for (int r = 0; r < Flash1::kRows; ++r) {
      if (first_row + r < block.rows.count) mem.store(a.O, origin + r * a.o.row, O[r]);
    }
  }
}

/// Tells whether a tile holds a visible pair, as far as window and lengths say, then pair by pair;
/// the same answer for all lanes.
template <class Mem>
__device__ bool tile_visited(Mem& mem, const ForwardArguments<Mem>& a, const QueryBlock& block,
                             TileRows keys) {
  if (!band_of_rows(block.sequence, a.mask, block.rows).meets(keys)) return false;
  return !a.mask.boolean || tile_visible(mem, a.shape, a.mask, block.sequence, block.rows, keys);
}

template <class Mem>
__global__ void __launch_bounds__(Flash1::kLanes)
    flash1_forward(ForwardArguments<Mem> a, SavedStatistics<Mem> saved) {
  constexpr int kBlockQ = Flash1::kBlockQ, kBlockK = Flash1::kBlockK, kRows = Flash1::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_k = odd_stride(dk), first_row = warp_in_block() * kRows;
  float* const K = shared;
  float* const V = K + kBlockK * stride_k;
  float* const Q = V + kBlockK * odd_stride(dv);
  float* const P = Q + kBlockQ * stride_k;

  QueryBlock block =
      query_block(mem, a.shape, a.mask, blockIdx.x * tiles_of(a.shape.seqlen_q, kBlockQ), kBlockQ);
  const Sequence& sequence = block.sequence;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, block.head) : 0;
  const auto each_query_block = [&](const auto& body) {
    for (std::int64_t first = 0; first < sequence.q_length; first += kBlockQ) {
      block.rows = rows_from(first, sequence.q_length, kBlockQ);
      body();
    }
  };
  each_query_block([&] { begin_rows(mem, a, saved, block); });
  for (std::int64_t key = 0; key < sequence.k_length; key += kBlockK) {
    const TileRows keys = rows_from(key, sequence.k_length, kBlockK);
    bool loaded = false;
    each_query_block([&] {
      if (!tile_visited(mem, a, block, keys)) return;
      __syncthreads();  // the tiles before are no longer read
      if (!loaded) {
        load_tile<kBlockK>(mem, a.K, a.k, block.key_origin(a.k) + key * a.k.row, keys.count, dk, K,
                           stride_k);
        load_rows(mem, a.V, a.v, block.key_origin(a.v) + key * a.v.row, keys.count, dv, V,
                  odd_stride(dv));
      }
      loaded = true;
      load_tile<kBlockQ>(mem, a.Q, a.q, block.origin(a.q), block.rows.count, dk, Q, stride_k);
      __syncthreads();
      float S[kRows] = {}, rescale[kRows];
      add_row_products(Q + first_row * stride_k, stride_k, K + lane_in_warp() * stride_k, dk, S);
      finish_scores(mem, a, block, keys, slope, S);
      update_rows(mem, saved, block, S, rescale);
      for (int r = 0; r < kRows; ++r) P[(first_row + r) * kBlockK + lane_in_warp()] = S[r];
      __syncwarp();  // a warp reads its own rows only
      update_O(mem, a, block, P, V, keys.count, rescale);
    });
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for its one launch.
template <class Mem, class Launch>
void flash1_launches(const ForwardArguments<Mem>& a, const SavedStatistics<Mem>& saved,
                     Launch&& launch) {
  launch("flash1_forward", Flash1::line(a.shape), flash1_forward<Mem>, a, saved);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
