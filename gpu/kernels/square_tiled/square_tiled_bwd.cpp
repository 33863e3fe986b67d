#include "gpu/kernels/square_tiled/square_tiled_bwd.hpp"

#include "gpu/kernels/flash2/flash2.hpp"
#include "gpu/kernels/kernels.hpp"
#include "gpu/kernels/square_tiled/square_tensor_tile.cuh"
#include "gpu/kernels/square_tiled/square_tiled_bwd.cuh"

namespace attest::gpu {
namespace {

std::int64_t workspace_words(const attest_problem& problem) {
  return delta_words(problem) + pairs_of(shape_of(problem));
}

template <class Tile>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  square_tiled_bwd_launches<Tile>(
      SquareTiledBwdArguments<simt::Counted, typename Tile::Element>{
          planned_backward<typename Tile::Element>(shape), {}},
      plan);
  return plan;
}

template <class Tile>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.softcap == 0 && plan<Tile>(shape).fits(emulation);
}

template <class Tile>
simt::LaunchReport run(EmulatedBackward& call, const simt::Emulation& emulation) {
  using T = typename Tile::Element;
  const auto S = call.take("S", pairs_of(call.arguments.shape));
  EmulatedLaunches launches(emulation, call.memory);
  square_tiled_bwd_launches<Tile>(SquareTiledBwdArguments<simt::Counted, T>{call.typed<T>(), S},
                                  launches);
  return launches.report();
}

template <class T>
using TensorTileOf = SquareTensorTile<32, T>;

simt::LaunchReport run_on_tensor_cores(EmulatedBackward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? run<TensorTileOf<Bf16>>(call, emulation)
                                     : run<TensorTileOf<F16>>(call, emulation);
}

// A kernel with the forward of another.
attest_description described(const EmulatedKernel& forward, const std::string& name,
                             const char* summary, const std::string& backward) {
  attest_description d = forward.description();
  // This backward leaves no dSinks and no dBias, and takes no pages; it reads no mask of heads and
  // writes no dQ past a query length.
  d.features &= ~std::uint32_t{ATTEST_SINKS | ATTEST_PAGED_KV | ATTEST_BIAS | ATTEST_HEAD_MASK |
                               ATTEST_QUERY_LENGTHS};
  d.name = name.c_str();
  d.summary = summary;
  d.features &= ~std::uint32_t{ATTEST_SOFTCAP};
  d.schedule_backward = backward.c_str();
  return d;
}

}  // namespace

std::string square_tiled_bwd_schedule(int side) {
  return "square_tiled_bwd:b=" + std::to_string(side);
}

template <int kSide>
const EmulatedKernel& square_tiled_bwd_side_kernel() {
  using Tile = SquareTile<kSide>;
  static const std::string name = variant_name("gpu/square_tiled_bwd", kSide, 32),
                           backward = square_tiled_bwd_schedule(kSide);
  static const EmulatedKernel kernel(
      described(flash2_kernel(), name,
                "CUDA, emulated on the host: forward of gpu/flash2; backward by square tiles",
                backward),
      {.forward = flash2_kernel().directions().forward,
       .backward = {fits<Tile>, workspace_words, run<Tile>, plan<Tile>}});
  return kernel;
}
template const EmulatedKernel& square_tiled_bwd_side_kernel<16>();
template const EmulatedKernel& square_tiled_bwd_side_kernel<32>();
template const EmulatedKernel& square_tiled_bwd_side_kernel<64>();
template const EmulatedKernel& square_tiled_bwd_side_kernel<128>();

const EmulatedKernel& square_tiled_bwd_kernel() { return square_tiled_bwd_side_kernel<32>(); }

const EmulatedKernel& square_tiled_bwd_tensor_core_kernel() {
  static const std::string name = "gpu/square_tiled_bwd_tensor_core",
                           backward = square_tiled_bwd_schedule(32);
  static const EmulatedKernel kernel(
      described(flash2_tensor_core_kernel(), name,
                "CUDA, emulated on the host: forward of gpu/flash2_tensor_core; backward by square "
                "tiles on tensor cores",
                backward),
      {.forward = flash2_tensor_core_kernel().directions().forward,
       .backward = {fits<TensorTileOf<Bf16>>, workspace_words, run_on_tensor_cores,
                    plan<TensorTileOf<Bf16>>}});
  return kernel;
}

}  // namespace attest::gpu
