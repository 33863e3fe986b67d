#pragma once

#include "gpu/kernels/key_gradients.cuh"

/// FlashAttention-2's backward, float32: key blocks stay with dK and dV, dQ is summed in global
/// memory by atomic additions, whose order changes its bits from call to call on a device.
///
/// Grid:   a warp for each row of a (batch, query head), then a block for each 32 keys of a
///         (batch, key head), which goes through the query heads of its group.
/// Words:  of the schedule key_stationary:bq=p,bk=32, p the queries that pass at once, an atomic
///         addition being a read and a write. In addition dQ of a query that sees keys is first
///         written as zero and read once more; a group reads K and V once and leaves no partial
///         sums. [gpu/kernels/key_stationary_test "words"]
/// Source: Dao 2023, Algorithm 2.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct KeyStationary {
  static constexpr int kRows = 4;  // of a block that prepares, one for each warp
};

/// D = rowsum(dO o O) - dLSE and zeros in dQ.
template <class Mem>
__global__ void __launch_bounds__(32 * KeyStationary::kRows)
    key_stationary_prepare(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_q, KeyStationary::kRows, a.shape.num_heads_q);
  const Sequence sequence = sequence_of(mem, a.shape, a.mask, place.batch);
  const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t row = place.first + warp;
  if (row < sequence.q_length) {
    const std::int64_t position = sequence.q_begin + row;
    const std::int64_t o = row_origin(a.o, sequence, place.head, position),
                       d_o = row_origin(a.d_o, sequence, place.head, position),
                       dq = row_origin(a.dq, sequence, place.head, position);
    float sum = 0;
    for (int c = lane; c < a.shape.head_dim_v; c += 32) {
      sum += mem.load(a.dO, d_o + c * a.d_o.column) * mem.load(a.O, o + c * a.o.column);
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      if (a.dLSE) sum -= mem.load(a.dLSE, row_origin(a.dlse, sequence, place.head, position));
      mem.store(a.D, row_origin(a.d, sequence, place.head, position), sum);
    }
    for (int c = lane; c < a.shape.head_dim_qk; c += 32) {
      mem.store(a.dQ, dq + c * a.dq.column, 0.0F);
    }
  }
  mem.flush();
}

/// dK and dV; dQ by additions to what key_stationary_prepare left.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) key_stationary_keys(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  key_gradients<Tile, QueryGradient::added>(mem, a);
  mem.flush();
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
