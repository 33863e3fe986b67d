#pragma once

#include "gpu/kernels/tiles/backward_tile.cuh"
#include "gpu/kernels/tiles/grid.hpp"

/// dBias = the sums of dS, without the softcap's derivative, over the axes that the bias does not
/// depend on, as a launch of its own, after D: a lane for each element.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct BiasGradients {
  static constexpr int kLanes = 128;
};

inline BlockLine bias_line(const BiasExtents& extents) {
  return {(extents.elements() + BiasGradients::kLanes - 1) / BiasGradients::kLanes,
          BiasGradients::kLanes, 0};
}

/// Returns what query i of one head adds to an element of key `key`, or of every key.
template <class Mem>
__device__ float bias_gradient_of_row(Mem& mem, const BackwardArguments<Mem>& a,
                                      const Sequence& sequence, std::int64_t head, std::int64_t i,
                                      std::int64_t key, bool every_key) {
  const std::int64_t position = sequence.q_begin + i;
  const std::int64_t kv_head = head / (a.shape.num_heads_q / a.shape.num_heads_kv);
  const float LSE = mem.load(a.LSE, row_origin(a.lse, sequence, head, position));
  const float D = mem.load(a.D, row_origin(a.d, sequence, head, position));
  const float slope = a.alibi_slopes ? mem.load(a.alibi_slopes, head) : 0;
  const std::int64_t of_q = row_origin(a.q, sequence, head, position),
                     of_dO = row_origin(a.d_o, sequence, head, position);
  const std::int64_t first = every_key ? 0 : key,
                     end = every_key || key >= sequence.keys ? sequence.keys : key + 1;
  float sum = 0;
  for (std::int64_t j = first; j < end; ++j) {
    const std::int64_t of_k = row_origin(a.k, sequence, kv_head, sequence.k_begin + j),
                       of_v = row_origin(a.v, sequence, kv_head, sequence.k_begin + j);
    float product = 0, dP = 0;
    for (int c = 0; c < a.shape.head_dim_qk; ++c) {
      product += mem.load(a.Q, of_q + c * a.q.column) * mem.load(a.K, of_k + c * a.k.column);
    }
    for (int c = 0; c < a.shape.head_dim_v; ++c) {
      dP += mem.load(a.dO, of_dO + c * a.d_o.column) * mem.load(a.V, of_v + c * a.v.column);
    }
    sum += pair_gradient(mem, a, sequence, head, slope, i, j, product, dP, LSE, D).of_bias;
  }
  return sum;
}

/// Sums in the order of batch entries, heads, queries and keys: equal calls give equal bits.
template <class Mem>
__device__ void bias_gradients(Mem& mem, const BackwardArguments<Mem>& a) {
  const BiasExtents& extents = a.dbias_extents;
  std::int64_t number = static_cast<std::int64_t>(blockIdx.x) * BiasGradients::kLanes + threadIdx.x;
  if (number >= extents.elements()) return;
  const std::int64_t key = number % extents.keys;
  number /= extents.keys;
  const std::int64_t query = number % extents.queries;
  number /= extents.queries;
  const std::int64_t head = number % extents.heads, batch = number / extents.heads;
  const bool every_batch = extents.batch == 1, every_head = extents.heads == 1,
             every_query = extents.queries == 1, every_key = extents.keys == 1;
  float sum = 0;
  for (std::int64_t b = batch; b < (every_batch ? a.shape.batch : batch + 1); ++b) {
    const Sequence sequence = sequence_of(mem, a.shape, a.mask, b);
    const std::int64_t end =
        every_query || query >= sequence.q_length ? sequence.q_length : query + 1;
    for (std::int64_t h = head; h < (every_head ? a.shape.num_heads_q : head + 1); ++h) {
      for (std::int64_t i = query; i < end; ++i) {
        sum += bias_gradient_of_row(mem, a, sequence, h, i, key, every_key);
      }
    }
  }
  mem.store(
      a.dBias,
      batch * a.dbias.batch + head * a.dbias.head + query * a.dbias.row + key * a.dbias.column,
      sum);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
