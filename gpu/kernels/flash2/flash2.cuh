#pragma once

#include "gpu/kernels/emulated/kernel_name.hpp"
#include "gpu/kernels/emulated/registers.hpp"
#include "gpu/kernels/tiles/columns.hpp"
#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/passing_tiles.cuh"
#include "gpu/kernels/tiles/row_sums.cuh"

/// FlashAttention-2 forward in float32, of tensors in float32 or 16 bits: a block of queries stays
/// with its sums, blocks of keys pass by, K leaves shared memory before V comes.
///
/// Grid:   one block for each q queries of a (batch, head), all in x; warps of 4 queries each.
/// Shared: Q (q, head_dim_qk), K or V (k, larger head dimension), P (q, k), rows of odd length.
/// Words:  those of the schedule flash2:bq=q,bk=k; gpu/flash2 has 32 of each.
///         [gpu/kernels/schedule_words_test, gpu/kernels/capped_test]
/// Pages:  a kernel of its own, each row of a tile of K or V from its page; entries of the block
/// table
///         are no words of it.  [gpu/kernels/flash2/flash2_pages_test]
/// Sinks:  m begins at the sink of the head, l at 1; every lane reads it, no barrier is needed.
/// Source: Dao 2023, Algorithm 1.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// At most 32 keys, one for each lane of a warp.
template <int kQueries, int kKeys>
struct Flash2Tile {
  static constexpr int kBlockQ = kQueries, kBlockK = kKeys;
  static constexpr int kRows = 4;                                   // of a warp
  static constexpr int kLanes = kBlockQ / kRows * 32, kBlocks = 0;  // as the compiler likes
  static_assert(kBlockQ % kRows == 0 && kBlockK <= 32);

  static std::string name() { return kernel_name("Flash2Tile", kQueries, kKeys); }

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

using Flash2 = Flash2Tile<32, 32>;

/// A tile of which each row takes the keys that it sees alone: 0 times a NaN or an infinity in V of
/// another row's key would be NaN.  [proptest/suites/emulated_suite_test "NaN"]
template <class Tile>
struct SeenAlone : Tile {
  static constexpr bool kSeenAlone = true;

  static std::string name() { return kernel_name("SeenAlone", Tile::name()); }
};

/// Where the keys of a batch entry lie.
enum class Keys : std::uint8_t { in_order, in_pages };

/// Takes the keys of a walk's tiles, one after another, into the sums of a block's queries.
template <class Tile, Keys kKeys = Keys::in_order, int kColumns, class Tiles, class Mem, class T>
__device__ void attend(Mem& mem, const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                       Tiles tiles, float* shared, RowSums<Tile::kRows, kColumns>& sums) {
  constexpr int kBlockQ = Tile::kBlockQ, kBlockK = Tile::kBlockK, kRows = Tile::kRows;
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_q = odd_stride(dk), stride_v = odd_stride(dv);
  float* const Q = shared;
  float* const KV = Q + kBlockQ * stride_q;
  float* const P = KV + kBlockK * odd_stride(dk > dv ? dk : dv);
  const int first_row = warp_in_block() * kRows, lane = lane_in_warp();
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, block.head) : 0;
  [[maybe_unused]] const std::int64_t origin_k = block.key_origin(a.k),
                                      origin_v = block.key_origin(a.v);

  bool loaded = false;
  for (TileRows keys; tiles.next(mem, keys);) {
    if (!tiles.visible(mem, keys)) continue;
    if (!loaded) {
      load_tile<kBlockQ>(mem, a.Q, a.q, block.origin(a.q), block.rows.count, dk, Q, stride_q);
    }
    loaded = true;
    __syncthreads();  // V of the tile before is no longer read
    if constexpr (kKeys == Keys::in_pages) {
      load_rows_in_pages(mem, a.K, a.k, a.pages, block, keys, dk, KV, stride_q);
      clear_rows<kBlockK>(keys.count, dk, KV, stride_q);
    } else {
      load_tile<kBlockK>(mem, a.K, a.k, origin_k + keys.first * a.k.row, keys.count, dk, KV,
                         stride_q);
    }
    __syncthreads();
    float S[kRows] = {};
    if (lane < kBlockK) {
      add_row_products(Q + first_row * stride_q, stride_q, KV + lane * stride_q, dk, S);
    }
    finish_scores(mem, a, block, keys, slope, S);
    ATTEST_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (!tiles.shows(first_row + r, lane)) S[r] = -INFINITY;
    }
    constexpr bool kSeenAlone = requires { Tile::kSeenAlone; };
    bool hidden[kRows];
    for (int r = 0; r < kRows; ++r) hidden[r] = kSeenAlone && S[r] == -INFINITY;
    sums.take_scores(S);
    if (lane < kBlockK) {
      for (int r = 0; r < kRows; ++r) {
        P[(first_row + r) * kBlockK + lane] = hidden[r] ? kUnseen : S[r];
      }
    }
    __syncthreads();  // K is no longer read
    if constexpr (kKeys == Keys::in_pages) {
      load_rows_in_pages(mem, a.V, a.v, a.pages, block, keys, dv, KV, stride_v);
    } else {
      load_rows(mem, a.V, a.v, origin_v + keys.first * a.v.row, keys.count, dv, KV, stride_v);
    }
    __syncthreads();
    add_weighted_rows<kSeenAlone>(P + first_row * kBlockK, kBlockK, KV, stride_v, keys.count, dv,
                                  sums.O);
  }
}

/// The work of a block. `kColumns` times 32 columns of V, at least head_dim_v, are held in
/// registers.
template <class Tile, Keys kKeys, int kColumns, class Mem, class T>
__device__ void flash2_block(const ForwardArguments<Mem, T>& a, float* shared) {
  Mem mem(a.sink);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, Tile::kBlockQ);
  if (block.rows.count > 0) {
    RowSums<Tile::kRows, kColumns> sums;
    const std::int64_t first = block.rows.first + warp_in_block() * Tile::kRows;
    if (a.sinks) {
      sums.begin_with(mem.load(a.sinks, block.head), block.sequence.queries - first);
    }
    attend<Tile, kKeys>(mem, a, block,
                        EveryTile::keys<Tile::kBlockQ, Tile::kBlockK>(mem, a.shape, a.mask,
                                                                      block.sequence, block.rows),
                        shared, sums);
    sums.template store_O<T>(mem, block, a.shape.head_dim_v, a.O, a.o);
    if (a.LSE) sums.store_LSE(mem, block, a.LSE, a.lse);
  }
  mem.flush();
}

template <class Tile, int kColumns, class Mem, class T = float>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    flash2_forward(ForwardArguments<Mem, T> a) {
  ATTEST_DYNAMIC_SHARED(float, shared);
  flash2_block<Tile, Keys::in_order, kColumns>(a, shared);
}

template <class Tile, int kColumns, class Mem, class T = float>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    flash2_forward_in_pages(ForwardArguments<Mem, T> a) {
  ATTEST_DYNAMIC_SHARED(float, shared);
  flash2_block<Tile, Keys::in_pages, kColumns>(a, shared);
}

/// launch(name, line, kernel, arguments...) for its one launch.
///
/// Requires: head_dim_v at most kMostColumns.
template <class Tile = Flash2, class Mem, class T, class Launch>
void flash2_launches(const ForwardArguments<Mem, T>& a, Launch&& launch) {
  with_columns(a.shape.head_dim_v, [&]<int kColumns>() {
    if (a.pages.table) {
      launch(kernel_name("flash2_forward_in_pages", Tile::name(), kColumns, name_of_type<T>()),
             Tile::line(a.shape), flash2_forward_in_pages<Tile, kColumns, Mem, T>, a);
      return;
    }
    launch(kernel_name("flash2_forward", Tile::name(), kColumns, name_of_type<T>()),
           Tile::line(a.shape), flash2_forward<Tile, kColumns, Mem, T>, a);
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
