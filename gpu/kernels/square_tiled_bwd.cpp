#include "gpu/kernels/square_tiled_bwd.hpp"

#include "gpu/kernels/backward_lines.cuh"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/square_tiled_bwd.cuh"

namespace attest::gpu {
namespace {

using Mem = simt::Counted;

std::int64_t pairs(const AttentionShape& shape) {
  return shape.batch * shape.num_heads_q * shape.seqlen_q * shape.seqlen_k;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.softcap == 0 && gpu::fits(delta_line(shape), emulation) &&
         gpu::fits(SquareTiledBwd::query_line(shape), emulation) &&
         gpu::fits(SquareTiledBwd::key_line(shape), emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return delta_words(problem) + pairs(shape_of(problem));
}

}  // namespace

simt::LaunchReport square_tiled_bwd_emulated(EmulatedBackward& call,
                                             const simt::Emulation& emulation) {
  const AttentionShape& shape = call.arguments.shape;
  const SquareTiledBwdArguments<Mem> arguments{call.arguments, call.take("S", pairs(shape))};
  const BlockLine queries = SquareTiledBwd::query_line(shape),
                  keys = SquareTiledBwd::key_line(shape);
  simt::LaunchReport report = launch_line(delta_line(shape), emulation, call.memory,
                                          square_tiled_bwd_deltas<Mem>, call.arguments);
  const auto run = [&](const BlockLine& line, const auto& kernel) {
    report += launch_line(line, emulation, call.memory, kernel, arguments);
  };
  run(queries, square_tiled_bwd_p<Mem>);
  run(keys, square_tiled_bwd_dv<Mem>);
  run(queries, square_tiled_bwd_ds<Mem>);
  run(queries, square_tiled_bwd_dq<Mem>);
  run(keys, square_tiled_bwd_dk<Mem>);
  return report;
}

const EmulatedKernel& square_tiled_bwd_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = flash2_kernel().description();
        d.name = "gpu/square_tiled_bwd";
        d.summary = "CUDA, emulated on the host: forward of gpu/flash2; backward by square tiles";
        d.features &= ~std::uint32_t{ATTEST_SOFTCAP};
        return d;
      }(),
      {.forward = flash2_kernel().directions().forward,
       .backward = {fits, workspace_words, square_tiled_bwd_emulated}});
  return kernel;
}

}  // namespace attest::gpu
