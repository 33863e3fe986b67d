#pragma once

#include "gpu/kernels/emulated/registers.hpp"
#include "gpu/kernels/tiles/backward_lines.cuh"
#include "gpu/kernels/tiles/bias_gradients.cuh"
#include "gpu/kernels/tiles/sink_gradients.cuh"

/// Attention backward in two passes, float32: one with query blocks resident for dQ, one with key
/// blocks resident for dK and dV. No atomic addition: equal calls give equal bits.
///
/// Grid:   a block for each r queries of a (batch, query head), then one for each r keys of a
///         (batch, key head), which goes through the query heads of its group; gpu/flash2 has 32.
///         With sinks, then a warp for each query head; with a bias, a lane for each element.
/// Words:  of the schedule two_pass:bq=r,bk=p,cq=p,ck=r, p the rows that pass at once, but for
///         groups: a group reads K and V once in the second pass and leaves no partial sums. dSinks
///         and dBias are no part of the schedule. [gpu/kernels/two_pass/two_pass_test "words",
///         gpu/kernels/capped_test]
namespace attest::gpu {
inline namespace ATTEST_SIMT_WORLD {

/// dQ and D.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    two_pass_queries(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  query_gradients<Tile, DeltaSource::formed>(mem, a);
  mem.flush();
}

/// dK and dV, after two_pass_queries.
template <class Tile, class Mem>
__global__ void __launch_bounds__(Tile::kLanes, Tile::kBlocks)
    two_pass_keys(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  key_gradients<Tile, KeySums::dK_dV>(mem, a);
  mem.flush();
}

/// dSinks, after two_pass_queries.
template <class Mem>
__global__ void __launch_bounds__(SinkGradients::kLanes) two_pass_sinks(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  sink_gradients(mem, a);
  mem.flush();
}

/// dBias, after two_pass_queries.
template <class Mem>
__global__ void __launch_bounds__(BiasGradients::kLanes) two_pass_bias(BackwardArguments<Mem> a) {
  Mem mem(a.sink);
  bias_gradients(mem, a);
  mem.flush();
}

/// launch(name, line, kernel, arguments...) for both passes in turn, then for dSinks if there are
/// sinks and for dBias if there is a bias.
///
/// Requires: head dimensions of at most kMostBackwardColumns.
template <int kResident = 32, Registers kRegisters = Registers::as_compiled, class Mem,
          class Launch>
void two_pass_launches(const BackwardArguments<Mem>& a, Launch&& launch) {
  with_backward_tile<kResident>(widest_head(a.shape), [&](auto tile) {
    using Tile = WithRegisters<decltype(tile), kRegisters>;
    launch(kernel_name("two_pass_queries", Tile::name()), query_line(tile, a.shape),
           two_pass_queries<Tile, Mem>, a);
    launch(kernel_name("two_pass_keys", Tile::name()), key_line(tile, a.shape),
           two_pass_keys<Tile, Mem>, a);
  });
  if (a.sinks) launch("two_pass_sinks", sink_line(a.shape), two_pass_sinks<Mem>, a);
  if (a.dBias) launch("two_pass_bias", bias_line(a.dbias_extents), two_pass_bias<Mem>, a);
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::gpu
