#pragma once

#include "gpu/kernels/tiles/backward_tile.cuh"
#include "gpu/kernels/tiles/passing_tiles.cuh"

/// dK and dV of 32 keys that stay while queries pass by.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// Sums of a block; its part of dQ is added to global memory.
enum class KeySums { dK_dV, dK_dV_dQ };

struct KeyGradients {
  /// K (32, head_dim_qk), V (32, head_dim_v), Q, dO (passing), P, dS (32, passing), LSE, D.
  template <class Tile>
  __host__ __device__ static std::int64_t shared_floats(int head_dim_qk, int head_dim_v) {
    return std::int64_t{Tile::kResident + Tile::kPassing} *
               (odd_stride(head_dim_qk) + odd_stride(head_dim_v)) +
           2 * Tile::kPassing * (Tile::kResident + 1);
  }
};

/// dQ of passing queries += scale dS K, dS (keys, queries): each word is added once, atomically.
template <class Tile, class Mem>
__device__ void add_query_gradients(Mem& mem, const BackwardArguments<Mem>& a, std::int64_t origin,
                                    int queries, const float* dS, const float* K, int keys,
                                    int stride) {
  constexpr int kRows = Tile::kPassing / Tile::kRowWarps;
  const TileLane at = tile_lane<Tile>();
  const int first = at.warp % Tile::kRowWarps * kRows;
  for (int column = at.warp / Tile::kRowWarps * 32 + at.lane; column < a.shape.head_dim_qk;
       column += 32 * Tile::kGroups) {
    float sums[kRows] = {};
    for (int j = 0; j < keys; ++j) {
      const float k = K[j * stride + column];
      for (int r = 0; r < kRows; ++r) sums[r] += dS[j * Tile::kPassing + first + r] * k;
    }
    for (int r = 0; r < kRows; ++r) {
      if (first + r >= queries) continue;
      mem.add(a.dQ, origin + (first + r) * a.dq.row + column * a.dq.column,
              a.shape.softmax_scale * sums[r]);
    }
  }
}

/// One block's sums over the query heads of its group, of each the tiles of a walk over queries. D
/// is read.
template <class Tile, KeySums kSums, class Walk = EveryTile, class Mem>
__device__ void key_gradients(Mem& mem, const BackwardArguments<Mem>& a) {
  constexpr int kResident = Tile::kResident, kPassing = Tile::kPassing;
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_k = odd_stride(dk), stride_v = odd_stride(dv);
  float* const K = shared;
  float* const V = K + kResident * stride_k;
  float* const Q = V + kResident * stride_v;
  float* const dO = Q + kPassing * stride_k;
  float* const P = dO + kPassing * stride_v;
  float* const dS = P + kResident * kPassing;
  float* const LSE = dS + kResident * kPassing;
  float* const D = LSE + kPassing;

  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_k, kResident, a.shape.num_heads_kv);
  const std::int64_t head_kv = place.head, key = place.first;
  const std::int64_t group = a.shape.num_heads_q / a.shape.num_heads_kv;
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  if (key >= sequence.k_length) return;  // the whole block
  const TileRows resident = rows_from(key, sequence.k_length, kResident);
  const int keys = resident.count;
  const TileLane at = tile_lane<Tile>();
  const std::int64_t place_k = sequence.k_begin + key;

  float dK[Tile::kRows][Tile::kColumns], dV[Tile::kRows][Tile::kColumns];
  clear_sums(dK);
  clear_sums(dV);
  bool loaded = false;
  for (std::int64_t head = head_kv * group; head < (head_kv + 1) * group; ++head) {
    const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
    auto tiles =
        Walk::template queries<kResident, kPassing>(mem, a.shape, a.mask, sequence, resident);
    for (TileRows queries; tiles.next(mem, queries);) {
      if (!tiles.visible(mem, queries)) continue;
      const std::int64_t first = queries.first;
      const int rows = queries.count;
      if (!loaded) {
        load_tile<kResident>(mem, a.K, a.k, row_origin(a.k, sequence, head_kv, place_k), keys, dk,
                             K, stride_k);
        load_tile<kResident>(mem, a.V, a.v, row_origin(a.v, sequence, head_kv, place_k), keys, dv,
                             V, stride_v);
      }
      loaded = true;
      __syncthreads();  // Q, dO, P and dS of the tile before are no longer read
      const std::int64_t position = sequence.q_begin + first;
      load_rows(mem, a.Q, a.q, row_origin(a.q, sequence, head, position), rows, dk, Q, stride_k);
      load_rows(mem, a.dO, a.d_o, row_origin(a.d_o, sequence, head, position), rows, dv, dO,
                stride_v);
      load_scalars(mem, a.LSE, a.lse, row_origin(a.lse, sequence, head, position), rows, LSE);
      load_scalars(mem, a.D, a.d, row_origin(a.d, sequence, head, position), rows, D);
      __syncthreads();
      float S[Tile::kPairRows] = {}, dP[Tile::kPairRows] = {};
      if (at.lane < rows) {
        add_row_products(K + at.pair_row * stride_k, stride_k, Q + at.lane * stride_k, dk, S);
        add_row_products(V + at.pair_row * stride_v, stride_v, dO + at.lane * stride_v, dv, dP);
      }
      leave_products<Tile>(S, dP, at, P, dS);
      for (int row = at.pair_row; row < at.pair_row + Tile::kPairRows; ++row) {
        if (at.lane >= kPassing) break;
        const int pair = row * kPassing + at.lane;
        PairGradient gradient{0, 0};
        if (row < keys && at.lane < rows && tiles.shows(row, at.lane)) {
          gradient = pair_gradient(mem, a, sequence, head, slope, first + at.lane, key + row,
                                   P[pair], dS[pair], LSE[at.lane], D[at.lane]);
        }
        P[pair] = gradient.P;
        dS[pair] = gradient.dS;
      }
      __syncthreads();
      add_weighted<Tile>(P, dO, rows, dv, stride_v, at, dV);
      add_weighted<Tile>(dS, Q, rows, dk, stride_k, at, dK);
      if constexpr (kSums == KeySums::dK_dV_dQ) {
        add_query_gradients<Tile>(mem, a, row_origin(a.dq, sequence, head, position), rows, dS, K,
                                  keys, stride_k);
      }
    }
  }
  // V is not read after the last barrier, K only by the sums of dQ.
  if constexpr (kSums == KeySums::dK_dV_dQ) __syncthreads();
  leave_sums<Tile>(dK, a.shape.softmax_scale, at, K, dk, stride_k);
  leave_sums<Tile>(dV, 1, at, V, dv, stride_v);
  __syncthreads();
  store_rows(mem, a.dK, a.dk, row_origin(a.dk, sequence, head_kv, place_k), keys, dk, K, stride_k);
  store_rows(mem, a.dV, a.dv, row_origin(a.dv, sequence, head_kv, place_k), keys, dv, V, stride_v);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
