#pragma once

#include "gpu/kernels/tiles/backward_lines.cuh"

/// FlashAttention-2's backward, float32: key blocks stay with dK and dV, dQ is summed in global
/// memory by atomic additions, whose order changes its bits from call to call on a device.
///
/// Grid:   a warp for each row of a (batch, query head), then a block for each 32 keys of a
///         (batch, key head), which goes through the query heads of its group.
/// Words:  of the schedule key_stationary:bq=p,bk=32, p the queries that pass at once, an atomic
///         addition being a read and a write. In addition dQ of a query that sees keys is first
///         written as zero and read once more; a group reads K and V once and leaves no partial
///         sums. [gpu/kernels/key_stationary/key_stationary_test "words"]
/// Source: Dao 2023, Algorithm 2.
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// D = rowsum(dO o O) - dLSE and zeros in dQ.
template <class Mem>
__global__ void __launch_bounds__(Deltas::kLanes) key_stationary_prepare(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  const DeltaRow row = delta_row(mem, a);
  if (row.exists()) {
    store_delta(mem, a, row);
    const std::int64_t origin = row.origin(a.dq);
    for (int c = lane_in_warp(); c < a.shape.head_dim_qk; c += 32) {
      mem.store(a.dQ, origin + c * a.dq.column, 0.0F);
    }
  }
  mem.flush();
}

/// dK and dV; dQ by additions to what key_stationary_prepare left.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, 1) key_stationary_keys(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  key_gradients<Tile, KeySums::dK_dV_dQ>(mem, a);
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for the launch that prepares.
template <class Mem, class Launch>
void key_stationary_prepare_launch(const BackwardArguments<Mem>& a, Launch&& launch) {
  launch("key_stationary_prepare", delta_line(a.shape), key_stationary_prepare<Mem>, a);
}

/// For the other.
///
/// Requires: head dimensions of at most kMostBackwardColumns.
template <class Mem, class Launch>
void key_stationary_keys_launch(const BackwardArguments<Mem>& a, Launch&& launch) {
  with_backward_tile(widest_head(a.shape), [&](auto tile) {
    using Tile = decltype(tile);
    launch(kernel_name("key_stationary_keys", Tile::name()), key_line(tile, a.shape),
           key_stationary_keys<Tile, Mem>, a);
  });
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
