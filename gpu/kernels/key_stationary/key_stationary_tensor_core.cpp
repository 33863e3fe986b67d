#include "gpu/kernels/key_stationary/key_stationary_tensor_core.cuh"

#include "gpu/kernels/kernels.hpp"

namespace attest::gpu {
namespace {

LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  const KeyStationarySums<simt::Counted, Bf16> sums{planned_backward<Bf16>(shape), {}};
  with_tensor_tile(widest_head(shape),
                   [&](auto tile) { key_stationary_tensor_core_launches(tile, sums, plan); });
  return plan;
}

bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return widest_head(shape) <= WidestTensorTile::kMostColumns && plan(shape).fits(emulation);
}

std::int64_t workspace_words(const attest_problem& problem) {
  return delta_words(problem) * (1 + problem.head_dim_qk);
}

template <class T>
simt::LaunchReport run_typed(EmulatedBackward& call, const simt::Emulation& emulation) {
  KeyStationarySums<simt::Counted, T> sums;
  sums.dQ = call.take("sums of dQ", call.delta_rows() * call.arguments.shape.head_dim_qk);
  sums.call = call.typed<T>();
  EmulatedLaunches launches(emulation, call.memory);
  with_tensor_tile(widest_head(sums.call.shape),
                   [&](auto tile) { key_stationary_tensor_core_launches(tile, sums, launches); });
  return launches.report();
}

simt::LaunchReport run(EmulatedBackward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? run_typed<Bf16>(call, emulation)
                                     : run_typed<F16>(call, emulation);
}

}  // namespace

/// gpu/key_stationary_tensor_core: forward is that of gpu/flash2_tensor_core; tensors in bf16 or
/// f16. The workspace is D and a float for each word of dQ.
/// [gpu/kernels/key_stationary/key_stationary_tensor_core_test]
const EmulatedKernel& key_stationary_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = flash2_tensor_core_kernel().description();
        d.name = "gpu/key_stationary_tensor_core";
        d.summary =
            "CUDA, emulated on the host: forward of gpu/flash2_tensor_core; backward with atomic "
            "additions to dQ";
        d.numerics.nondeterministic = 1;
        d.schedule_backward = "key_stationary:bq=32,bk=64";
        return d;
      }(),
      {.forward = flash2_tensor_core_kernel().directions().forward,
       .backward = {fits, workspace_words, run, plan}});
  return kernel;
}

}  // namespace attest::gpu
