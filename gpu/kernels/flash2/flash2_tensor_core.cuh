#pragma once

#include "gpu/kernels/tiles/fragments.cuh"
#include "gpu/kernels/tiles/grid.hpp"

/// FlashAttention-2 forward on tensor cores, of tensors in bf16 or f16: a block of queries stays in
/// registers with its sums in float32, blocks of keys pass through shared memory, the next one
/// under way while one is used. P is rounded to the tensors' type for its product with V, its row
/// sum is not.
///
/// Grid:   one block for each 64 queries of a (batch, head), all in x; 4 warps of 16 queries each,
/// 8
///         for heads of more than 128 columns, where two warps form the same scores.
/// Shared: Q (64), K and V (32) twice, rows of pair_rows.cuh. O goes out through that of Q.
/// Words:  those of the schedule flash2:bq=64,bk=32.  [gpu/kernels/schedule_words_test]
/// Source: Dao 2023, Algorithm 1 and section 3.3 (differs: no warp specialisation).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct Flash2TensorCore {
  /// Words from one row of Q, and of O, to the next.
  __host__ __device__ static int stride_q(const AttentionShape& shape) {
    return pair_stride(shape.head_dim_qk > shape.head_dim_v ? shape.head_dim_qk : shape.head_dim_v);
  }
  template <class Tile>
  static BlockLine line(const Tile&, const AttentionShape& shape) {
    const std::int64_t words = std::int64_t{Tile::kResident} * stride_q(shape) +
                               std::int64_t{Tile::kStages} * Tile::kPassing *
                                   (pair_stride(shape.head_dim_qk) + pair_stride(shape.head_dim_v));
    return {blocks_for(shape.seqlen_q, Tile::kResident, shape.num_heads_q, shape.batch),
            Tile::kLanes, bytes_of_floats(words)};
  }
};

/// The online softmax of a lane's two rows of its warp's sixteen, and their sums.
template <class Tile>
struct FragmentRows {
  float m[2] = {-INFINITY, -INFINITY};
  float l[2] = {0, 0};  // of this lane's keys
  float O[Tile::kSums][4];

  __device__ FragmentRows() { clear_fragments(O); }

  /// Takes a tile of scores in: they become weights of the tile's rows of V.
  __device__ void take_scores(float (&S)[Tile::kPairs][4]) {
    ATTEST_UNROLL
    for (int half = 0; half < 2; ++half) {
      float maximum = m[half];
      ATTEST_UNROLL
      for (int k = 0; k < Tile::kPairs; ++k) {
        maximum = fmaxf(maximum, fmaxf(S[k][2 * half], S[k][2 * half + 1]));
      }
      maximum = row_max(maximum);
      const float shift = maximum == -INFINITY ? 0 : maximum;  // exp(-inf) = 0, and a NaN stays
      const float rescale = expf(m[half] - shift);
      m[half] = maximum;
      l[half] *= rescale;
      ATTEST_UNROLL
      for (int k = 0; k < Tile::kPairs; ++k) {
        ATTEST_UNROLL
        for (int w = 2 * half; w < 2 * half + 2; ++w) {
          S[k][w] = expf(S[k][w] - shift);
          l[half] += S[k][w];
        }
      }
      ATTEST_UNROLL
      for (int c = 0; c < Tile::kSums; ++c) {
        O[c][2 * half] *= rescale;
        O[c][2 * half + 1] *= rescale;
      }
    }
  }
};

/// Products of the warp's queries with the passing keys become scores, -inf where masked.
template <class Tile, class Mem, class T>
__device__ void finish_pairs(Mem& mem, const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                             std::int64_t key, float slope, float (&S)[Tile::kPairs][4]) {
  ATTEST_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int row = warp_row<Tile>() + fragment_row(2 * half);
    const std::int64_t i = block.rows.first + row;
    KeyBand band;
    if (row < block.rows.count) band = band_of(block.sequence, a.mask, i);
    const PassingBand seen = passing_band<Tile>(band, key);
    ATTEST_UNROLL
    for (int k = 0; k < Tile::kPairs; ++k) {
      ATTEST_UNROLL
      for (int w = 2 * half; w < 2 * half + 2; ++w) {
        const int column = 8 * k + fragment_column(w);
        const bool visible =
            Tile::sees(seen.begin, seen.end, column) &&
            (!a.mask.boolean || mem.load(a.mask.boolean, i * a.shape.seqlen_k + key + column) != 0);
        S[k][w] =
            visible
                ? score_of(S[k][w], a.shape, slope, i + block.sequence.shift, key + column).value
                : -INFINITY;
      }
    }
  }
}

/// Takes the keys of `band` into the sums of a block's queries; tiles without a visible pair are
/// not loaded.
template <class Tile, class Mem, class T>
__device__ void attend(Mem& mem, const ForwardArguments<Mem, T>& a, const QueryBlock& block,
                       KeyBand band, unsigned* Q, FragmentRows<Tile>& sums) {
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_q = pair_stride(dk);
  const int words_k = Tile::kPassing * pair_stride(dk), words_v = Tile::kPassing * pair_stride(dv);
  unsigned* const K = Q + Tile::kResident * Flash2TensorCore::stride_q(a.shape);
  unsigned* const V = K + Tile::kStages * words_k;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, block.head) : 0;
  const std::int64_t origin_k = block.key_origin(a.k), origin_v = block.key_origin(a.v);
  const auto begin = [&](std::int64_t key, int stage) {
    const int count = rows_from(key, block.sequence.k_length, Tile::kPassing).count;
    copy_rows<Tile::kPassing>(mem, a.K, a.k, origin_k + key * a.k.row, count, dk,
                              K + stage * words_k);
    copy_rows<Tile::kPassing>(mem, a.V, a.v, origin_v + key * a.v.row, count, dv,
                              V + stage * words_v);
    simt::cp_async_commit();
  };
  const auto visible_from = [&](std::int64_t key) {
    return visible_keys<Tile>(mem, a.shape, a.mask, block.sequence, block.rows, band, key);
  };

  std::int64_t key = visible_from(band.first_tile(Tile::kPassing));
  if (key >= band.end) return;
  copy_rows<Tile::kResident>(mem, a.Q, a.q, block.origin(a.q), block.rows.count, dk, Q);
  begin(key, 0);
  unsigned fragments[Tile::kMostColumns / 16][4];
  bool loaded = false;
  for (int stage = 0; key < band.end; stage = Tile::next_stage(stage)) {
    const std::int64_t next = visible_from(key + Tile::kPassing);
    Tile::await_tile();
    if (next < band.end) begin(next, Tile::next_stage(stage));
    if (!loaded) {
      ATTEST_UNROLL
      for (int c = 0; c < Tile::kMostColumns / 16; ++c) {
        if (16 * c < dk) load_left(fragments[c], Q + warp_row<Tile>() * stride_q, stride_q, 16 * c);
      }
    }
    loaded = true;
    float S[Tile::kPairs][4];
    clear_fragments(S);
    const auto rows_of_Q = [&](int column, unsigned(&left)[4]) {
      for (int w = 0; w < 4; ++w) left[w] = fragments[column / 16][w];
    };
    add_pair_products<Tile, T>(rows_of_Q, K + stage * words_k, dk, S);
    finish_pairs<Tile>(mem, a, block, key, slope, S);
    sums.take_scores(S);
    add_weighted_passing<Tile, T>(S, V + stage * words_v, dv, sums.O);
    key = next;
  }
}

/// Writes the rows' LSE where it is wanted; `inverse` are the factors of a lane's rows of O, 0
/// where no key was seen.
template <class Tile, class Mem>
__device__ void finish_rows(Mem& mem, const FragmentRows<Tile>& sums, const QueryBlock& block,
                            typename Mem::template Out<float> LSE, const Strides& lse,
                            float (&inverse)[2]) {
  ATTEST_UNROLL
  for (int half = 0; half < 2; ++half) {
    const float l = row_sum(sums.l[half]);
    inverse[half] = l == 0 ? 0 : 1 / l;
    const int row = warp_row<Tile>() + fragment_row(2 * half);
    const bool stores = warp_column<Tile>() == 0 && lane_in_warp() % 4 == 0;
    if (!LSE || !stores || row >= block.rows.count) continue;
    mem.store(LSE, block.origin(lse) + row * lse.row, l == 0 ? -INFINITY : sums.m[half] + logf(l));
  }
}

template <class Tile, class T, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1)
    flash2_tensor_core_forward(ForwardArguments<Mem, T> a) {
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(unsigned, shared);
  const QueryBlock block = query_block(mem, a.shape, a.mask, blockIdx.x, Tile::kResident);
  if (block.rows.count > 0) {
    FragmentRows<Tile> sums;
    attend(mem, a, block, band_of_rows(block.sequence, a.mask, block.rows), shared, sums);
    float inverse[2];
    finish_rows(mem, sums, block, a.LSE, a.lse, inverse);
    const int stride = Flash2TensorCore::stride_q(a.shape), dv = a.shape.head_dim_v;
    __syncthreads();  // Q is no longer read
    leave_sums<Tile, T>(sums.O, inverse[0], inverse[1], dv, shared, stride);
    __syncthreads();
    store_pairs<T>(mem, a.O, a.o, block.origin(a.o), block.rows.count, dv, shared, stride);
  }
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for its one launch.
///
/// Requires: head dimensions of at most WidestTensorTile::kMostColumns.
template <class Mem, class T, class Launch>
void flash2_tensor_core_launches(const ForwardArguments<Mem, T>& a, Launch&& launch) {
  with_tensor_tile(widest_head(a.shape), [&](auto tile) {
    using Tile = decltype(tile);
    launch(kernel_name("flash2_tensor_core_forward", Tile::name(), name_of_type<T>()),
           Flash2TensorCore::line(tile, a.shape), flash2_tensor_core_forward<Tile, T, Mem>, a);
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
