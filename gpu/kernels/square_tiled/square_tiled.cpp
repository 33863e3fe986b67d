#include "gpu/kernels/square_tiled/square_tiled.hpp"

#include "gpu/kernels/square_tiled/square_tensor_tile.cuh"
#include "gpu/kernels/square_tiled/square_tiled.cuh"

namespace attest::gpu {
namespace {

std::int64_t workspace_words(const attest_problem& problem) {
  return pairs_of(shape_of(problem)) + tensor_rows(problem) * problem.num_heads_q;
}

template <class Tile>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  square_tiled_launches<Tile>(
      SquareTiledArguments<simt::Counted, typename Tile::Element>{
          planned_forward<typename Tile::Element>(shape), {}},
      plan);
  return plan;
}

template <class Tile>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return plan<Tile>(shape).fits(emulation);
}

template <class Tile>
simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  using T = typename Tile::Element;
  const auto S = call.take("S", pairs_of(call.arguments.shape));
  call.require_LSE();
  EmulatedLaunches launches(emulation, call.memory);
  square_tiled_launches<Tile>(SquareTiledArguments<simt::Counted, T>{call.typed<T>(), S}, launches);
  return launches.report();
}

template <class T>
using TensorTileOf = SquareTensorTile<32, T>;

simt::LaunchReport run_on_tensor_cores(EmulatedForward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? run<TensorTileOf<Bf16>>(call, emulation)
                                     : run<TensorTileOf<F16>>(call, emulation);
}

}  // namespace

template <int kSide>
const EmulatedKernel& square_tiled_side_kernel() {
  using Tile = SquareTile<kSide>;
  static const std::string name = variant_name("gpu/square_tiled", kSide, 32);
  static const std::string schedule = "square_tiled:b=" + std::to_string(kSide);
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            name.c_str(), "CUDA, emulated on the host: square tiles, S in global memory",
            schedule.c_str());
        d.numerics.exp_zero_not_one = 1;
        return d;
      }(),
      {.forward = {fits<Tile>, workspace_words, run<Tile>, plan<Tile>}});
  return kernel;
}
template const EmulatedKernel& square_tiled_side_kernel<16>();
template const EmulatedKernel& square_tiled_side_kernel<32>();
template const EmulatedKernel& square_tiled_side_kernel<64>();
template const EmulatedKernel& square_tiled_side_kernel<128>();

const EmulatedKernel& square_tiled_kernel() { return square_tiled_side_kernel<32>(); }

const EmulatedKernel& square_tiled_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = tensor_core_description(
            "gpu/square_tiled_tensor_core",
            "CUDA, emulated on the host: square tiles on tensor cores, S in global memory",
            "square_tiled:b=32");
        d.numerics.exp_zero_not_one = 1;
        d.numerics.p_normalized = 1;
        d.numerics.sum_after_cast = 1;
        return d;
      }(),
      {.forward = {fits<TensorTileOf<Bf16>>, workspace_words, run_on_tensor_cores,
                   plan<TensorTileOf<Bf16>>}});
  return kernel;
}

}  // namespace attest::gpu
