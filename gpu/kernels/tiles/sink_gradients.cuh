#pragma once

#include "gpu/kernels/tiles/grid.hpp"
#include "gpu/kernels/tiles/tile.cuh"

/// dSinks = -rowsum(exp(sink - LSE) D) as a launch of its own, after D: a warp for each query head.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

struct SinkGradients {
  static constexpr int kLanes = 32;
};

inline BlockLine sink_line(const AttentionShape& shape) {
  return {shape.num_heads_q, SinkGradients::kLanes, 0};
}

/// Sums rows lane, lane + 32, … of all sequences, then the lanes: equal calls give equal bits.
template <class Mem, class T>
__device__ void sink_gradients(Mem& mem, const BackwardArguments<Mem, T>& a) {
  const std::int64_t head = blockIdx.x;
  const float sink = mem.load(a.sinks, head);
  const std::int64_t entries = sink == -INFINITY ? 0 : a.shape.batch;  // rows may have LSE = -inf
  float sum = 0;
  for (std::int64_t b = 0; b < entries; ++b) {
    const Sequence sequence = sequence_of(mem, a.shape, a.mask, b);
    for (std::int64_t row = lane_in_warp(); row < sequence.queries; row += 32) {
      const std::int64_t position = sequence.q_begin + row;
      const float LSE = mem.load(a.LSE, row_origin(a.lse, sequence, head, position));
      sum -= expf(sink - LSE) * mem.load(a.D, row_origin(a.d, sequence, head, position));
    }
  }
  sum = warp_sum(sum);
  if (lane_in_warp() == 0) mem.store(a.dSinks, head * a.dsinks, sum);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
