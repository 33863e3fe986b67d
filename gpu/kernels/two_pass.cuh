#pragma once

#include "gpu/kernels/tile.cuh"

/// Attention backward in two passes, float32: one with query blocks resident for dQ, one with key
/// blocks resident for dK and dV. No atomic addition: equal calls give equal bits.
///
/// Grid:   a block for each 32 queries of a (batch, query head), then one for each 32 keys of a
///         (batch, key head), which goes through the query heads of its group.
/// Shared: Q, K (32, head_dim_qk), dO, V (32, head_dim_v), P and dS (32, 32), rows of odd length.
/// Words:  by the formula of the schedule two_pass:bq=32,bk=32,cq=32,ck=32 where every head has
/// keys of its
///         own; a group reads K and V once in the second pass and leaves no partial sums.
///         [gpu/kernels/two_pass_test "words"]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct TwoPass {
  static constexpr int kBlock = 32, kLanes = 128;
  static constexpr int kRows = kBlock / (kLanes / 32);  // of a warp

  __host__ __device__ static std::int64_t shared_floats(int head_dim_qk, int head_dim_v) {
    return std::int64_t{2 * kBlock} * (odd_stride(head_dim_qk) + odd_stride(head_dim_v) + kBlock) +
           2 * kBlock;
  }
};

/// P of a pair and the derivative of the loss by its product with the scale left out.
struct PairGradient {
  float P, dS;
};

template <class Mem>
__device__ PairGradient pair_gradient(Mem& mem, const BackwardArguments<Mem>& a,
                                      const Sequence& sequence, float slope, std::int64_t i,
                                      std::int64_t j, float product, float dP, float LSE, float D) {
  if (LSE == -INFINITY || !pair_visible(mem, a.shape, a.mask, sequence, i, j)) return {0, 0};
  const Score score = score_of(product, a.shape, slope, i + sequence.shift, j);
  const float P = expf(score.value - LSE);
  return {P, P * (dP - D) * score.derivative};
}

/// Inner products of a warp's rows with the lane's row: A of the warp's rows, B of the lane.
__device__ inline void add_products(const float* A, const float* B, int columns, int stride,
                                    float (&sums)[TwoPass::kRows]) {
  for (int c = 0; c < columns; ++c) {
    const float b = B[c];
    for (int r = 0; r < TwoPass::kRows; ++r) sums[r] += A[r * stride + c] * b;
  }
}

/// sums(r, c) += sum over k of W(r, k) X(k, c) for the warp's rows and the lane's columns.
template <int kColumns>
__device__ void add_weighted(const float* W, const float* X, int count, int columns, int stride,
                             float (&sums)[TwoPass::kRows][kColumns]) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int c = 0; c < kColumns; ++c) {
    const int column = c * 32 + lane;
    if (column >= columns) continue;
    for (int k = 0; k < count; ++k) {
      const float x = X[k * stride + column];
      for (int r = 0; r < TwoPass::kRows; ++r) sums[r][c] += W[r * TwoPass::kBlock + k] * x;
    }
  }
}

/// Rows of zeros to a tile's end, so that products need not ask which rows exist.
__device__ inline void clear_rows(float* tile, int first, int stride) {
  for (int i = first * stride + static_cast<int>(threadIdx.x); i < TwoPass::kBlock * stride;
       i += static_cast<int>(blockDim.x)) {
    tile[i] = 0;
  }
}

/// dQ and D. `kColumns` times 32 columns, at least head_dim_qk, are held in registers.
template <int kColumns, class Mem>
__global__ void __launch_bounds__(TwoPass::kLanes) two_pass_queries(BackwardArguments<Mem> a) {
  constexpr int kBlock = TwoPass::kBlock, kRows = TwoPass::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_k = odd_stride(dk), stride_v = odd_stride(dv);
  float* const Q = shared;
  float* const K = Q + kBlock * stride_k;
  float* const dO = K + kBlock * stride_k;
  float* const V = dO + kBlock * stride_v;
  float* const dS = V + kBlock * stride_v;

  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_q, kBlock, a.shape.num_heads_q);
  const std::int64_t head = place.head, first = place.first;
  const std::int64_t head_kv = head / (a.shape.num_heads_q / a.shape.num_heads_kv);
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  if (first >= sequence.q_length) {  // the whole block
    mem.flush();
    return;
  }
  const int rows =
      static_cast<int>(sequence.q_length - first < kBlock ? sequence.q_length - first : kBlock);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t batch = sequence.batch, position = sequence.q_begin + first;
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;

  load_rows(mem, a.dO, a.d_o, batch * a.d_o.batch + position * a.d_o.row + head * a.d_o.head, rows,
            dv, dO, stride_v);
  clear_rows(dO, rows, stride_v);
  __syncthreads();
  float D[kRows], LSE[kRows], dQ[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    const int row = warp * kRows + r;
    float sum = 0;
    if (row < rows) {
      const std::int64_t origin = batch * a.o.batch + (position + row) * a.o.row + head * a.o.head;
      for (int c = lane; c < dv; c += 32) {
        sum += dO[row * stride_v + c] * mem.load(a.O, origin + c * a.o.column);
      }
      if (lane == 0 && a.dLSE) {
        sum -= mem.load(a.dLSE,
                        batch * a.dlse.batch + head * a.dlse.head + (position + row) * a.dlse.row);
      }
    }
    D[r] = warp_sum(sum);
    if (lane == 0 && row < rows) {
      mem.store(a.D, batch * a.d.batch + head * a.d.head + (position + row) * a.d.row, D[r]);
    }
    LSE[r] = -INFINITY;
    for (int c = 0; c < kColumns; ++c) dQ[r][c] = 0;
  }
  const std::int64_t begin = band_of(sequence, a.mask, first).begin,
                     end = band_of(sequence, a.mask, first + rows - 1).end;
  bool loaded = false;
  for (std::int64_t key = begin < end ? begin / kBlock * kBlock : end; key < end; key += kBlock) {
    const int keys =
        static_cast<int>(sequence.k_length - key < kBlock ? sequence.k_length - key : kBlock);
    if (a.mask.boolean && !tile_visible(mem, a.shape, a.mask, sequence, {first, rows}, {key, keys}))
      continue;
    if (!loaded) {
      load_rows(mem, a.Q, a.q, batch * a.q.batch + position * a.q.row + head * a.q.head, rows, dk,
                Q, stride_k);
      clear_rows(Q, rows, stride_k);
      for (int r = 0; r < kRows; ++r) {
        const int row = warp * kRows + r;
        float value = -INFINITY;
        if (lane == 0 && row < rows) {
          value = mem.load(a.LSE,
                           batch * a.lse.batch + head * a.lse.head + (position + row) * a.lse.row);
        }
        LSE[r] = __shfl_sync(~0U, value, 0);
      }
    }
    loaded = true;
    __syncthreads();  // K and V of the tile before are no longer read
    const std::int64_t place_k = sequence.k_begin + key;
    load_rows(mem, a.K, a.k, batch * a.k.batch + place_k * a.k.row + head_kv * a.k.head, keys, dk,
              K, stride_k);
    load_rows(mem, a.V, a.v, batch * a.v.batch + place_k * a.v.row + head_kv * a.v.head, keys, dv,
              V, stride_v);
    __syncthreads();
    float S[kRows] = {}, dP[kRows] = {};
    if (lane < keys) {
      add_products(Q + warp * kRows * stride_k, K + lane * stride_k, dk, stride_k, S);
      add_products(dO + warp * kRows * stride_v, V + lane * stride_v, dv, stride_v, dP);
    }
    for (int r = 0; r < kRows; ++r) {
      const int row = warp * kRows + r;
      float gradient = 0;
      if (row < rows && lane < keys) {
        gradient = pair_gradient(mem, a, sequence, slope, first + row, key + lane, S[r], dP[r],
                                 LSE[r], D[r])
                       .dS;
      }
      dS[row * kBlock + lane] = gradient;
    }
    __syncwarp();  // a warp reads its own rows only
    add_weighted<kColumns>(dS + warp * kRows * kBlock, K, keys, dk, stride_k, dQ);
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = warp * kRows + r;
    if (row >= rows) continue;
    for (int c = 0; c < kColumns; ++c) {
      const int column = c * 32 + lane;
      if (column >= dk) continue;
      mem.store(a.dQ,
                batch * a.dq.batch + (position + row) * a.dq.row + head * a.dq.head +
                    column * a.dq.column,
                a.shape.softmax_scale * dQ[r][c]);
    }
  }
  mem.flush();
}

/// dK and dV, after two_pass_queries. Columns as there, the larger of both head dimensions.
template <int kColumns, class Mem>
__global__ void __launch_bounds__(TwoPass::kLanes) two_pass_keys(BackwardArguments<Mem> a) {
  constexpr int kBlock = TwoPass::kBlock, kRows = TwoPass::kRows;
  Mem mem(a.sink);
  ATTEST_DYNAMIC_SHARED(float, shared);
  const int dk = a.shape.head_dim_qk, dv = a.shape.head_dim_v;
  const int stride_k = odd_stride(dk), stride_v = odd_stride(dv);
  float* const Q = shared;
  float* const K = Q + kBlock * stride_k;
  float* const dO = K + kBlock * stride_k;
  float* const V = dO + kBlock * stride_v;
  float* const P = V + kBlock * stride_v;
  float* const dS = P + kBlock * kBlock;
  float* const LSE = dS + kBlock * kBlock;
  float* const D = LSE + kBlock;

  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_k, kBlock, a.shape.num_heads_kv);
  const std::int64_t head_kv = place.head, key = place.first;
  const std::int64_t group = a.shape.num_heads_q / a.shape.num_heads_kv;
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  if (key >= sequence.k_length) {  // the whole block
    mem.flush();
    return;
  }
  const int keys =
      static_cast<int>(sequence.k_length - key < kBlock ? sequence.k_length - key : kBlock);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t batch = sequence.batch, place_k = sequence.k_begin + key;

  float dK[kRows][kColumns], dV[kRows][kColumns];
  for (int r = 0; r < kRows; ++r) {
    for (int c = 0; c < kColumns; ++c) dK[r][c] = dV[r][c] = 0;
  }
  bool loaded = false;
  for (std::int64_t head = head_kv * group; head < (head_kv + 1) * group; ++head) {
    const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
    for (std::int64_t first = 0; first < sequence.q_length; first += kBlock) {
      const int rows =
          static_cast<int>(sequence.q_length - first < kBlock ? sequence.q_length - first : kBlock);
      const std::int64_t begin = band_of(sequence, a.mask, first).begin,
                         end = band_of(sequence, a.mask, first + rows - 1).end;
      if (begin >= end || end <= key || begin >= key + keys) continue;
      if (a.mask.boolean &&
          !tile_visible(mem, a.shape, a.mask, sequence, {first, rows}, {key, keys}))
        continue;
      if (!loaded) {
        load_rows(mem, a.K, a.k, batch * a.k.batch + place_k * a.k.row + head_kv * a.k.head, keys,
                  dk, K, stride_k);
        load_rows(mem, a.V, a.v, batch * a.v.batch + place_k * a.v.row + head_kv * a.v.head, keys,
                  dv, V, stride_v);
        clear_rows(K, keys, stride_k);
        clear_rows(V, keys, stride_v);
      }
      loaded = true;
      __syncthreads();  // Q and dO of the tile before are no longer read
      const std::int64_t position = sequence.q_begin + first;
      load_rows(mem, a.Q, a.q, batch * a.q.batch + position * a.q.row + head * a.q.head, rows, dk,
                Q, stride_k);
      load_rows(mem, a.dO, a.d_o, batch * a.d_o.batch + position * a.d_o.row + head * a.d_o.head,
                rows, dv, dO, stride_v);
      if (static_cast<int>(threadIdx.x) < rows) {
        const std::int64_t row = position + static_cast<std::int64_t>(threadIdx.x);
        LSE[threadIdx.x] =
            mem.load(a.LSE, batch * a.lse.batch + head * a.lse.head + row * a.lse.row);
        D[threadIdx.x] = mem.load(a.D, batch * a.d.batch + head * a.d.head + row * a.d.row);
      }
      __syncthreads();
      float S[kRows] = {}, dP[kRows] = {};
      if (lane < rows) {
        add_products(K + warp * kRows * stride_k, Q + lane * stride_k, dk, stride_k, S);
        add_products(V + warp * kRows * stride_v, dO + lane * stride_v, dv, stride_v, dP);
      }
      for (int r = 0; r < kRows; ++r) {
        const int row = warp * kRows + r;
        PairGradient pair{0, 0};
        if (row < keys && lane < rows) {
          pair = pair_gradient(mem, a, sequence, slope, first + lane, key + row, S[r], dP[r],
                               LSE[lane], D[lane]);
        }
        P[row * kBlock + lane] = pair.P;
        dS[row * kBlock + lane] = pair.dS;
      }
      __syncwarp();  // a warp reads its own rows only
      add_weighted<kColumns>(P + warp * kRows * kBlock, dO, rows, dv, stride_v, dV);
      add_weighted<kColumns>(dS + warp * kRows * kBlock, Q, rows, dk, stride_k, dK);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    const int row = warp * kRows + r;
    if (row >= keys) continue;
    for (int c = 0; c < kColumns; ++c) {
      const int column = c * 32 + lane;
      if (column < dk) {
        mem.store(a.dK,
                  batch * a.dk.batch + (place_k + row) * a.dk.row + head_kv * a.dk.head +
                      column * a.dk.column,
                  a.shape.softmax_scale * dK[r][c]);
      }
      if (column < dv) {
        mem.store(a.dV,
                  batch * a.dv.batch + (place_k + row) * a.dv.row + head_kv * a.dv.head +
                      column * a.dv.column,
                  dV[r][c]);
      }
    }
  }
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
