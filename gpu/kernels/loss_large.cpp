#include "gpu/kernels/loss_large.hpp"

#include "gpu/kernels/backward_lines.cuh"
#include "gpu/kernels/loss_large.cuh"

namespace attest::gpu {
namespace {

using Mem = EmulatedLoss::Mem;

BlockLine square_line(int d, std::int64_t products) {
  return {products, LossLarge::kLanes, bytes_of_floats(LossLarge::shared_floats(d))};
}

template <class Tile>
BlockLine forward_line(const Tile&, std::int64_t n, int d) {
  return {blocks_for(n, Tile::kResident, 1, 1), Tile::kLanes,
          bytes_of_floats(LossForward::shared_floats<Tile>(d))};
}

// W = p A2 as attention's dQ: Q = A1 X, K = A2, V = h, dO = c, without scale or mask.
BackwardArguments<Mem> weights_times_keys(const LossArguments<Mem>& a) {
  const auto strides = [](const auto& matrix) { return Strides{0, matrix.row, 0, matrix.column}; };
  BackwardArguments<Mem> b;
  b.shape.batch = b.shape.num_heads_q = b.shape.num_heads_kv = 1;
  b.shape.seqlen_q = b.shape.seqlen_k = a.n;
  b.shape.head_dim_qk = b.shape.head_dim_v = a.d;
  b.shape.softmax_scale = 1;
  b.Q = a.QX.data;
  b.K = a.A2.data;
  b.V = a.h.data;
  b.dO = a.c.data;
  b.dQ = a.W.data;
  b.LSE = a.LSE;
  b.D = a.D;
  b.q = strides(a.QX);
  b.k = strides(a.A2);
  b.v = strides(a.h);
  b.d_o = strides(a.c);
  b.dq = strides(a.W);
  b.lse = b.d = {0, 1, 0, 0};
  b.sink = a.sink;
  return b;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  const int d = shape.head_dim_qk;
  return loss_claimed(shape) && gpu::fits(square_line(d, 2), emulation) &&
         d <= WidestTile::kMostColumns && with_backward_tile(d, [&](auto tile) {
           return gpu::fits(forward_line(tile, shape.seqlen_q, d), emulation) &&
                  gpu::fits(query_line(tile, shape), emulation);
         });
}

simt::LaunchReport run(EmulatedLoss& call, const simt::Emulation& emulation) {
  return loss_large_emulated(call, emulation);
}

}  // namespace

simt::LaunchReport loss_large_emulated(const EmulatedLoss& call, const simt::Emulation& emulation) {
  const LossArguments<Mem>& a = call.arguments;
  const bool dY = static_cast<bool>(a.dY.data);
  simt::LaunchReport report =
      launch_line(square_line(a.d, 2), emulation, call.memory, loss_large_resident<Mem>,
                  ProductArguments<Mem>{a.A1, a.X, a.QX, a.n, a.d, a.d, a.sink},
                  ProductArguments<Mem>{a.A3, a.Y, a.h, a.n, a.d, a.d, a.sink});
  with_backward_tile(a.d, [&](auto tile) {
    using Tile = decltype(tile);
    const BackwardArguments<Mem> weights = weights_times_keys(a);
    report += launch_line(forward_line(tile, a.n, a.d), emulation, call.memory,
                          loss_large_residual<Tile, Mem>, a);
    report += launch_line(query_line(tile, weights.shape), emulation, call.memory,
                          loss_large_p<Tile, Mem>, weights);
    if (dY) {
      report += launch_line(forward_line(tile, a.n, a.d), emulation, call.memory,
                            loss_large_weigh<Tile, Mem>, a);
    }
  });
  report += launch_line(
      square_line(a.d, dY ? 2 : 1), emulation, call.memory, loss_large_outer<Mem>,
      ProductArguments<Mem>{a.A1, reading<Mem>(a.W), a.dX, a.d, a.d, a.n, a.sink},
      ProductArguments<Mem>{reading<Mem>(a.Z), reading<Mem>(a.c), a.dY, a.d, a.d, a.n, a.sink});
  return report;
}

const EmulatedKernel& loss_large_kernel() {
  static const EmulatedKernel kernel(
      emulated_loss_description(
          "gpu/loss_large", "CUDA, emulated on the host: loss gradient, blocks of rows resident",
          "loss_large:b1=32,b2=32"),
      {.loss_gradient = {fits, loss_words, run}});
  return kernel;
}

}  // namespace attest::gpu
