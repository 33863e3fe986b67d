#pragma once

#include "gpu/kernels/tiles/backward_tile.cuh"

/// D = rowsum(dO o O) - dLSE as a launch of its own: a warp for each row of a (batch, query head).
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct Deltas {
  static constexpr int kRows = 4, kLanes = 32 * kRows;  // of a block
};

/// The row of a warp of such a launch; its sequence may end before it.
struct DeltaRow {
  Sequence sequence;
  std::int64_t head, row;

  __device__ bool exists() const { return row < sequence.q_length; }
  __device__ std::int64_t origin(const Strides& strides) const {
    return row_origin(strides, sequence, head, sequence.q_begin + row);
  }
};

template <class Mem, class T>
__device__ DeltaRow delta_row(Mem& mem, const BackwardArguments<Mem, T>& a) {
  const BlockPlace place =
      place_of_block(blockIdx.x, a.shape.seqlen_q, Deltas::kRows, a.shape.num_heads_q);
  return {sequence_of(mem, a.shape, a.mask, place.batch), place.head,
          place.first + warp_in_block()};
}

template <class Mem, class T>
__device__ void store_delta(Mem& mem, const BackwardArguments<Mem, T>& a, const DeltaRow& row) {
  const int lane = lane_in_warp();
  const std::int64_t o = row.origin(a.o), d_o = row.origin(a.d_o);
  float sum = 0;
  for (int c = lane; c < a.shape.head_dim_v; c += 32) {
    sum += to_float(mem.load(a.dO, d_o + c * a.d_o.column)) *
           to_float(mem.load(a.O, o + c * a.o.column));
  }
  sum = warp_sum(sum);
  if (lane != 0) return;
  if (a.dLSE) sum -= mem.load(a.dLSE, row.origin(a.dlse));
  mem.store(a.D, row.origin(a.d), sum);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
