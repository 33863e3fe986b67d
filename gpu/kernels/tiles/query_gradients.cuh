#pragma once

#include "gpu/kernels/tiles/backward_tile.cuh"
#include "gpu/kernels/tiles/passing_tiles.cuh"

/// dQ of 32 queries that stay while keys pass by.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Source of D = rowsum(dO o O) - dLSE: made and stored by the block, or read.
enum class DeltaSource { formed, given };

struct QueryGradients {
  /// Q (32, head_dim_qk), dO (32, head_dim_v), K, V (passing), P, dS (32, passing), LSE, D.
  template <class Tile>
  __host__ __device__ static std::int64_t shared_floats(int head_dim_qk, int head_dim_v) {
    return std::int64_t{Tile::kResident + Tile::kPassing} *
               (odd_stride(head_dim_qk) + odd_stride(head_dim_v)) +
           2 * Tile::kResident * (Tile::kPassing + 1);
  }
};

/// D of the block's rows, dO in shared memory and O passing; a warp takes every so many rows.
template <class Tile, class Mem>
__device__ void form_deltas(Mem& mem, const BackwardArguments<Mem>& a, const Sequence& sequence,
                            std::int64_t head, TileRows positions, const float* dO, int stride,
                            const TileLane& at, float* D) {
  for (int row = at.warp; row < positions.count; row += Tile::kWarps) {
    const std::int64_t position = positions.first + row;
    const std::int64_t origin = row_origin(a.o, sequence, head, position);
    float sum = 0;
    for (int c = at.lane; c < a.shape.head_dim_v; c += 32) {
      sum += dO[row * stride + c] * mem.load(a.O, origin + c * a.o.column);
    }
    sum = warp_sum(sum);
    if (at.lane != 0) continue;
    if (a.dLSE) sum -= mem.load(a.dLSE, row_origin(a.dlse, sequence, head, position));
    mem.store(a.D, row_origin(a.d, sequence, head, position), sum);
    D[row] = sum;
  }
}

/// One block's dQ from the tiles of a walk over keys; with DeltaSource::formed its D too.
template <class Tile, DeltaSource kDeltas, class Walk = EveryTile, class Mem>
__device__ void query_gradients(Mem& mem, const BackwardArguments<Mem>& a) {
  constexpr int kResident = Tile::kResident, kPassing = Tile::kPassing;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_k = odd_stride(dk), stride_v = odd_stride(dv);
  float* const Q = shared;
  float* const dO = Q + kResident * stride_k;
  float* const K = dO + kResident * stride_v;
  float* const V = K + kPassing * stride_k;
  float* const P = V + kPassing * stride_v;
  float* const dS = P + kResident * kPassing;
  float* const LSE = dS + kResident * kPassing;
  float* const D = LSE + kResident;

  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_q, kResident, a.shape.num_heads_q);
  const std::int64_t head = place.head, first = place.first;
  const std::int64_t head_kv = head / (a.shape.num_heads_q / a.shape.num_heads_kv);
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  if (first >= sequence.q_length) return;  // the whole block
  const TileRows queries = rows_from(first, sequence.q_length, kResident);
  const int rows = queries.count;
  const TileLane at = tile_lane<Tile>();
  const std::int64_t position = sequence.q_begin + first;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;

  load_tile<kResident>(mem, a.dO, a.d_o, row_origin(a.d_o, sequence, head, position), rows, dv, dO,
                       stride_v);
  if constexpr (kDeltas == DeltaSource::formed) {
    __syncthreads();
    form_deltas<Tile>(mem, a, sequence, head, {position, rows}, dO, stride_v, at, D);
  } else {
    load_scalars(mem, a.D, a.d, row_origin(a.d, sequence, head, position), rows, D);
  }
  float dQ[Tile::kRows][Tile::kColumns];
  clear_sums(dQ);
  auto tiles = Walk::template keys<kResident, kPassing>(mem, a.shape, a.mask, sequence, queries);
  bool loaded = false;
  for (TileRows passing; tiles.next(mem, passing);) {
    if (!tiles.visible(mem, passing)) continue;
    const std::int64_t key = passing.first;
    const int keys = passing.count;
    if (!loaded) {
      load_tile<kResident>(mem, a.Q, a.q, row_origin(a.q, sequence, head, position), rows, dk, Q,
                           stride_k);
      load_scalars(mem, a.LSE, a.lse, row_origin(a.lse, sequence, head, position), rows, LSE);
    }
    loaded = true;
    __syncthreads();  // K and dS of the tile before are no longer read
    const std::int64_t place_k = sequence.k_begin + key;
    load_rows(mem, a.K, a.k, row_origin(a.k, sequence, head_kv, place_k), keys, dk, K, stride_k);
    load_rows(mem, a.V, a.v, row_origin(a.v, sequence, head_kv, place_k), keys, dv, V, stride_v);
    __syncthreads();
    float S[Tile::kPairRows] = {}, dP[Tile::kPairRows] = {};
    if (at.lane < keys) {
      add_row_products(Q + at.pair_row * stride_k, stride_k, K + at.lane * stride_k, dk, S);
      add_row_products(dO + at.pair_row * stride_v, stride_v, V + at.lane * stride_v, dv, dP);
    }
    leave_products<Tile>(S, dP, at, P, dS);
    for (int row = at.pair_row; row < at.pair_row + Tile::kPairRows; ++row) {
      if (at.lane >= kPassing) break;
      const int pair = row * kPassing + at.lane;
      const bool exists = row < rows && at.lane < keys && tiles.shows(row, at.lane);
      dS[pair] = exists ? pair_gradient(mem, a, sequence, head, slope, first + row, key + at.lane,
                                        P[pair], dS[pair], LSE[row], D[row])
                              .dS
                        : 0;
    }
    __syncthreads();
    add_weighted<Tile>(dS, K, keys, dk, stride_k, at, dQ);
  }
  // Q is not read after the last barrier.
  leave_sums<Tile>(dQ, a.shape.softmax_scale, at, Q, dk, stride_k);
  __syncthreads();
  store_rows(mem, a.dQ, a.dq, row_origin(a.dq, sequence, head, position), rows, dk, Q, stride_k);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
