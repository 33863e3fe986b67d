#pragma once

#include "gpu/kernels/tile.cuh"

/// FlashAttention-2 forward, float32: a block of queries stays with its sums, blocks of keys pass
/// by, K leaves shared memory before V comes.
///
/// Grid:   one block for each 32 queries of a (batch, head), all in x; 4 warps of 8 queries each.
/// Shared: Q (32, head_dim_qk), K or V (32, larger head dimension), P (32, 32), rows of odd length.
/// Words:  by the formula of the schedule flash2:bq=32,bk=32 for Q, K, V, O and LSE.
///         [gpu/kernels/flash2_test "words"]
/// Source: Dao 2023, Algorithm 1.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct Flash2 {
  static constexpr int kBlockQ = 32, kBlockK = 32, kLanes = 128;
  static constexpr int kRows = kBlockQ / (kLanes / 32);  // of a warp

  __host__ __device__ static std::int64_t shared_floats(int head_dim_qk, int head_dim_v) {
    const int larger = head_dim_qk > head_dim_v ? head_dim_qk : head_dim_v;
    return std::int64_t{kBlockQ} * odd_stride(head_dim_qk) +
           std::int64_t{kBlockK} * odd_stride(larger) + std::int64_t{kBlockQ} * kBlockK;
  }
};

/// `kColumns` times 32 columns of V, at least head_dim_v, are held in registers.
template <int kColumns, class Mem>
__global__ void __launch_bounds__(Flash2::kLanes) flash2_forward(ForwardArguments<Mem> a) {
  constexpr int kBlockQ = Flash2::kBlockQ, kBlockK = Flash2::kBlockK, kRows = Flash2::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_q = odd_stride(dk), stride_v = odd_stride(dv);
  float* const Q = shared;
  float* const KV = Q + kBlockQ * stride_q;
  float* const P = KV + kBlockK * odd_stride(dk > dv ? dk : dv);

  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_q, kBlockQ, a.shape.num_heads_q);
  const std::int64_t head = place.head;
  const std::int64_t head_kv = head / (a.shape.num_heads_q / a.shape.num_heads_kv);
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  const std::int64_t first = place.first;
  if (first >= sequence.q_length) {  // the whole block
    mem.flush();
    return;
  }
  const int rows =
      static_cast<int>(sequence.q_length - first < kBlockQ ? sequence.q_length - first : kBlockQ);

  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t origin_q =
      sequence.batch * a.q.batch + (sequence.q_begin + first) * a.q.row + head * a.q.head;
  const std::int64_t origin_k =
      sequence.batch * a.k.batch + sequence.k_begin * a.k.row + head_kv * a.k.head;
  const std::int64_t origin_v =
      sequence.batch * a.v.batch + sequence.k_begin * a.v.row + head_kv * a.v.head;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;

  float m[kRows], l[kRows], O[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    m[r] = -INFINITY;
    l[r] = 0;
    for (int c = 0; c < kColumns; ++c) O[r][c] = 0;
  }
  // The union over the block's queries: both ends of the band grow with the query.
  const std::int64_t begin = band_of(sequence, a.mask, first).begin,
                     end = band_of(sequence, a.mask, first + rows - 1).end;
  bool loaded = false;
  for (std::int64_t key = begin < end ? begin / kBlockK * kBlockK : end; key < end;
       key += kBlockK) {
    const int keys =
        static_cast<int>(sequence.k_length - key < kBlockK ? sequence.k_length - key : kBlockK);
    if (a.mask.boolean && !tile_visible(mem, a.shape, a.mask, sequence, {first, rows}, {key, keys}))
      continue;
    if (!loaded) load_rows(mem, a.Q, a.q, origin_q, rows, dk, Q, stride_q);
    loaded = true;
    __syncthreads();  // V of the tile before is no longer read
    load_rows(mem, a.K, a.k, origin_k + key * a.k.row, keys, dk, KV, stride_q);
    __syncthreads();
    float S[kRows];
    for (int r = 0; r < kRows; ++r) S[r] = 0;
    if (lane < keys) {
      for (int c = 0; c < dk; ++c) {
        const float k = KV[lane * stride_q + c];
        for (int r = 0; r < kRows; ++r) {
          if (warp * kRows + r < rows) S[r] += Q[(warp * kRows + r) * stride_q + c] * k;
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      const int row = warp * kRows + r;
      const std::int64_t i = first + row, j = key + lane;
      const bool visible =
          row < rows && lane < keys && pair_visible(mem, a.shape, a.mask, sequence, i, j);
      const float score =
          visible ? score_of(S[r], a.shape, slope, i + sequence.shift, j).value : -INFINITY;
      const float maximum = fmaxf(m[r], warp_max(score));
      const float shift = maximum == -INFINITY ? 0 : maximum;  // exp(-inf) = 0, and a NaN stays
      const float p = expf(score - shift), rescale = expf(m[r] - shift);
      l[r] = l[r] * rescale + warp_sum(p);
      m[r] = maximum;
      for (int c = 0; c < kColumns; ++c) O[r][c] *= rescale;
      P[row * kBlockK + lane] = p;
    }
    __syncthreads();  // K is no longer read
    load_rows(mem, a.V, a.v, origin_v + key * a.v.row, keys, dv, KV, stride_v);
    __syncthreads();
    for (int c = 0; c < kColumns; ++c) {
      const int column = c * 32 + lane;
      if (column >= dv) continue;
      for (int j = 0; j < keys; ++j) {
        const float v = KV[j * stride_v + column];
        for (int r = 0; r < kRows; ++r) {
          O[r][c] += P[(warp * kRows + r) * kBlockK + j] * v;
        }
      }
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = warp * kRows + r;
    if (row >= rows) continue;
    const std::int64_t position = sequence.q_begin + first + row;
    for (int c = 0; c < kColumns; ++c) {
      const int column = c * 32 + lane;
      if (column >= dv) continue;
      mem.store(
          a.O,
          sequence.batch * a.o.batch + position * a.o.row + head * a.o.head + column * a.o.column,
          l[r] == 0 ? 0 : O[r][c] / l[r]);
    }
    if (lane == 0 && a.LSE) {
      mem.store(a.LSE, sequence.batch * a.lse.batch + head * a.lse.head + position * a.lse.row,
                l[r] == 0 ? -INFINITY : m[r] + logf(l[r]));
    }
  }
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
