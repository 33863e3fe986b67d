#include "gpu/kernels/flash2/flash2.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "gpu/kernels/flash2/flash2.cuh"
#include "gpu/kernels/two_pass/two_pass.hpp"

namespace attest::gpu {
namespace {

template <class Tile, class T>
LaunchPlan plan(const AttentionShape& shape) {
  ForwardArguments<simt::Counted, T> arguments;
  arguments.shape = shape;
  LaunchPlan plan;
  flash2_launches<Tile>(arguments, plan);
  return plan;
}

template <class Tile>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return shape.head_dim_v <= kMostColumns && gpu::fits(Tile::line(shape), emulation);
}

template <class Tile = Flash2, class T>
simt::LaunchReport launch(const EmulatedForward& call,
                          const ForwardArguments<simt::Counted, T>& arguments,
                          const simt::Emulation& emulation) {
  const AttentionShape& shape = arguments.shape;
  if (shape.head_dim_v > kMostColumns) throw InvalidProblem("gpu/flash2: head_dim_v is over 576");
  EmulatedLaunches launches(emulation, call.memory);
  flash2_launches<Tile>(arguments, launches);
  return launches.report();
}

template <class Tile>
simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  return launch<Tile>(call, call.arguments, emulation);
}

simt::LaunchReport run_16bit(EmulatedForward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? launch(call, call.typed<Bf16>(), emulation)
                                     : launch(call, call.typed<F16>(), emulation);
}

std::int64_t no_workspace(const attest_problem&) { return 0; }

}  // namespace

simt::LaunchReport flash2_forward_emulated(const EmulatedForward& call,
                                           const simt::Emulation& emulation) {
  return launch(call, call.arguments, emulation);
}

const EmulatedKernel& flash2_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/flash2", "CUDA, emulated on the host: online softmax; backward in two passes",
            "flash2:bq=32,bk=32", "two_pass:bq=32,bk=32,cq=32,ck=32");
        d.features |= ATTEST_SINKS | ATTEST_PAGED_KV | ATTEST_BIAS | ATTEST_HEAD_MASK |
                      ATTEST_QUERY_LENGTHS | ATTEST_OFFSET_WINDOW | ATTEST_SHARED_KV |
                      ATTEST_BATCH_INVARIANT | ATTEST_SPLIT_INVARIANT;
        return d;
      }(),
      {.forward = {fits<Flash2>, no_workspace, run<Flash2>, plan<Flash2, float>},
       .backward = two_pass_direction()});
  return kernel;
}

template <int kRows>
const EmulatedKernel& flash2_held_kernel() {
  constexpr int kKeys = std::min(kRows, 32);
  using Tile = Held<Flash2Tile<kRows, kKeys>>;
  static const std::string rows = std::to_string(kRows), name = "gpu/flash2_" + rows,
                           schedule = "flash2:bq=" + rows + ",bk=" + std::to_string(kKeys),
                           backward = two_pass_schedule<kRows>(heads_of_64_columns());
  static const EmulatedKernel kernel(
      emulated_description(name.c_str(),
                           "CUDA, emulated on the host: gpu/flash2 in 128 registers a lane",
                           schedule.c_str(), backward.c_str()),
      {.forward = {fits<Tile>, no_workspace, run<Tile>, plan<Tile, float>},
       .backward = two_pass_direction<kRows, Registers::held>()});
  return kernel;
}
template const EmulatedKernel& flash2_held_kernel<4>();
template const EmulatedKernel& flash2_held_kernel<8>();
template const EmulatedKernel& flash2_held_kernel<16>();
template const EmulatedKernel& flash2_held_kernel<32>();
template const EmulatedKernel& flash2_held_kernel<64>();

const EmulatedKernel& flash2_nonfinite_kernel() {
  using Tile = SeenAlone<Flash2>;
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/flash2_nonfinite",
            "CUDA, emulated on the host: gpu/flash2 forward, with NaN and infinities",
            "flash2:bq=32,bk=32");
        d.features |= ATTEST_NONFINITE;
        return d;
      }(),
      {.forward = {fits<Tile>, no_workspace, run<Tile>, plan<Tile, float>}});
  return kernel;
}

const EmulatedKernel& flash2_16bit_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = emulated_description(
            "gpu/flash2_16bit",
            "CUDA, emulated on the host: online softmax, float32 between 16-bit tensors",
            "flash2:bq=32,bk=32");
        d.dtypes = 1U << ATTEST_BF16 | 1U << ATTEST_F16;
        d.features |= ATTEST_SINKS | ATTEST_PAGED_KV;
        return d;
      }(),
      {.forward = {fits<Flash2>, no_workspace, run_16bit, plan<Flash2, Bf16>}});
  return kernel;
}

}  // namespace attest::gpu
