#include "gpu/kernels/square_tiled_bwd.hpp"

#include "gpu/kernels/backward_launch.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/square_tiled_bwd.cuh"

namespace attest::gpu {
namespace {

BlockLine line_of(const AttentionShape& shape, std::int64_t rows, std::int64_t heads) {
  return {blocks_for(rows, SquareTile::kSide, heads, shape.batch), SquareTile::kLanes, 0};
}
BlockLine query_blocks(const AttentionShape& shape) {
  return line_of(shape, shape.seqlen_q, shape.num_heads_q);
}
BlockLine key_blocks(const AttentionShape& shape) {
  return line_of(shape, shape.seqlen_k, shape.num_heads_kv);
}

std::int64_t deltas(const attest_tensor& dO) { return dO.shape[0] * dO.shape[1] * dO.shape[2]; }

std::size_t workspace_bytes(const void* self, const attest_problem* problem,
                            std::uint32_t direction) {
  if (direction != ATTEST_BACKWARD) return 0;
  const std::int64_t pairs =
      problem->batch * problem->num_heads_q * problem->seqlen_q * problem->seqlen_k;
  return flash2_kernel().workspace_bytes(self, problem, direction) +
         static_cast<std::size_t>(pairs) * sizeof(float);
}

attest_status backward(const void*, const attest_backward_args* args) {
  if (args->problem->dtype != ATTEST_F32 || args->problem->softcap != 0) return ATTEST_UNSUPPORTED;
  const EmulatedSquareTiledBwd call(*args);
  const AttentionShape& shape = call.arguments.shape;
  simt::Emulation emulation;
  emulation.threads = args->problem->num_threads;
  for (const BlockLine& line : {delta_line(shape), query_blocks(shape), key_blocks(shape)}) {
    if (!line.fits(emulation)) return ATTEST_UNSUPPORTED;
  }
  return square_tiled_bwd_emulated(call, emulation).diagnoses.empty() ? ATTEST_OK : ATTEST_FAILED;
}

}  // namespace

EmulatedSquareTiledBwd::EmulatedSquareTiledBwd(const attest_backward_args& args)
    : EmulatedBackward(args),
      S(memory.add("S", static_cast<float*>(args.workspace) + deltas(*args.dO),
                   arguments.shape.batch * arguments.shape.num_heads_q * arguments.shape.seqlen_q *
                       arguments.shape.seqlen_k)) {}

simt::LaunchReport square_tiled_bwd_emulated(const EmulatedSquareTiledBwd& call,
                                             const simt::Emulation& emulation) {
  using Mem = simt::Counted;
  const SquareTiledBwdArguments<Mem> arguments{call.arguments, call.S};
  const AttentionShape& shape = call.arguments.shape;
  simt::LaunchReport report = launch_line(delta_line(shape), emulation, call.memory,
                                          square_tiled_bwd_deltas<Mem>, call.arguments);
  const auto run = [&](const BlockLine& line, const auto& kernel) {
    report += launch_line(line, emulation, call.memory, kernel, arguments);
  };
  run(query_blocks(shape), square_tiled_bwd_p<Mem>);
  run(key_blocks(shape), square_tiled_bwd_dv<Mem>);
  run(query_blocks(shape), square_tiled_bwd_ds<Mem>);
  run(query_blocks(shape), square_tiled_bwd_dq<Mem>);
  run(key_blocks(shape), square_tiled_bwd_dk<Mem>);
  return report;
}

const attest_kernel& square_tiled_bwd_kernel() {
  static const attest_kernel kernel = [] {
    attest_kernel k = flash2_kernel();
    attest_description& d = k.description;
    d.name = "gpu/square_tiled_bwd";
    d.summary = "CUDA, emulated on the host: forward of gpu/flash2; backward by square tiles";
    d.features &= ~std::uint32_t{ATTEST_SOFTCAP};
    k.workspace_bytes = workspace_bytes;
    k.backward = backward;
    return k;
  }();
  return kernel;
}

}  // namespace attest::gpu
