#include "gpu/kernels/square_tiled.hpp"

#include "gpu/kernels/square_tiled.cuh"

namespace attest::gpu {
namespace {

std::int64_t workspace_words(const attest_problem& problem) {
  return pairs_of(shape_of(problem)) + tensor_rows(problem) * problem.num_heads_q;
}

template <int kSide>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  square_tiled_launches<SquareTile<kSide>>(
      SquareTiledArguments<simt::Counted>{planned_forward(shape), {}}, plan);
  return plan;
}

template <int kSide>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return plan<kSide>(shape).fits(emulation);
}

template <int kSide>
simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  const auto S = call.take("S", pairs_of(call.arguments.shape));
  call.require_LSE();
  EmulatedLaunches launches(emulation, call.memory);
  square_tiled_launches<SquareTile<kSide>>(SquareTiledArguments<simt::Counted>{call.arguments, S},
                                           launches);
  return launches.report();
}

}  // namespace

template <int kSide>
const EmulatedKernel& square_tiled_kernel() {
  static const std::string name = variant_name("gpu/square_tiled", kSide, 32);
  static const std::string schedule = "square_tiled:b=" + std::to_string(kSide);
  static const EmulatedKernel kernel(
      emulated_description(name.c_str(),
                           "CUDA, emulated on the host: square tiles, S in global memory",
                           schedule.c_str()),
      {.forward = {fits<kSide>, workspace_words, run<kSide>, plan<kSide>}});
  return kernel;
}
template const EmulatedKernel& square_tiled_kernel<16>();
template const EmulatedKernel& square_tiled_kernel<32>();
template const EmulatedKernel& square_tiled_kernel<64>();
template const EmulatedKernel& square_tiled_kernel<128>();

}  // namespace attest::gpu
