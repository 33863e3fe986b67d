#include "gpu/kernels/square_tiled_bwd.hpp"

#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/square_tiled_bwd.cuh"

namespace attest::gpu {
namespace {

std::int64_t workspace_words(const attest_problem& problem) {
  return delta_words(problem) + pairs_of(shape_of(problem));
}

template <int kSide>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  square_tiled_bwd_launches<SquareTile<kSide>>(
      SquareTiledBwdArguments<simt::Counted>{planned_backward(shape), {}}, plan);
  return plan;
}

template <int kSide>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.softcap == 0 && plan<kSide>(shape).fits(emulation);
}

template <int kSide>
simt::LaunchReport run(EmulatedBackward& call, const simt::Emulation& emulation) {
  const SquareTiledBwdArguments<simt::Counted> arguments{
      call.arguments, call.take("S", pairs_of(call.arguments.shape))};
  EmulatedLaunches launches(emulation, call.memory);
  square_tiled_bwd_launches<SquareTile<kSide>>(arguments, launches);
  return launches.report();
}

}  // namespace

std::string square_tiled_bwd_schedule(int side) {
  return "square_tiled_bwd:b=" + std::to_string(side);
}

template <int kSide>
const EmulatedKernel& square_tiled_bwd_kernel() {
  static const std::string name = variant_name("gpu/square_tiled_bwd", kSide, 32),
                           backward = square_tiled_bwd_schedule(kSide);
  static const EmulatedKernel kernel(
      [] {
        attest_description d = flash2_kernel().description();
        d.name = name.c_str();
        d.summary = "CUDA, emulated on the host: forward of gpu/flash2; backward by square tiles";
        d.features &= ~std::uint32_t{ATTEST_SOFTCAP};
        d.schedule_backward = backward.c_str();
        return d;
      }(),
      {.forward = flash2_kernel().directions().forward,
       .backward = {fits<kSide>, workspace_words, run<kSide>, plan<kSide>}});
  return kernel;
}
template const EmulatedKernel& square_tiled_bwd_kernel<16>();
template const EmulatedKernel& square_tiled_bwd_kernel<32>();
template const EmulatedKernel& square_tiled_bwd_kernel<64>();
template const EmulatedKernel& square_tiled_bwd_kernel<128>();

}  // namespace attest::gpu
