#include "gpu/kernels/stored_scores/stored_scores_tensor_core.cuh"

#include "gpu/kernels/kernels.hpp"

namespace attest::gpu {
namespace {

template <class T>
using Tile = SquareTensorTile<32, T>;
template <class T>
using Arguments = SquareTiledArguments<simt::Counted, T>;

std::int64_t score_words(const attest_problem& problem) { return pairs_of(shape_of(problem)); }

std::int64_t words_with_LSE(const attest_problem& problem) {
  return score_words(problem) + tensor_rows(problem) * problem.num_heads_q;
}

struct Standard {
  template <class T, class Launch>
  static void launches(const Arguments<T>& a, Launch&& launch) {
    standard_tensor_core_launches<Tile<T>>(a, launch);
  }
  static void prepare(EmulatedForward&) {}
};

struct Hybrid {
  template <class T, class Launch>
  static void launches(const Arguments<T>& a, Launch&& launch) {
    hybrid_tensor_core_launches<Tile<T>>(a, launch);
  }
  static void prepare(EmulatedForward& call) { call.require_LSE(); }
};

template <class Kernel>
LaunchPlan plan(const AttentionShape& shape) {
  LaunchPlan plan;
  Kernel::launches(Arguments<Bf16>{planned_forward<Bf16>(shape), {}}, plan);
  return plan;
}

template <class Kernel>
bool fits(const AttentionShape& shape, const simt::Emulation& emulation) {
  return plan<Kernel>(shape).fits(emulation);
}

template <class Kernel, class T>
simt::LaunchReport run_typed(EmulatedForward& call, const simt::Emulation& emulation) {
  const auto S = call.take("S", pairs_of(call.arguments.shape));
  Kernel::prepare(call);
  EmulatedLaunches launches(emulation, call.memory);
  Kernel::launches(Arguments<T>{call.typed<T>(), S}, launches);
  return launches.report();
}

template <class Kernel>
simt::LaunchReport run(EmulatedForward& call, const simt::Emulation& emulation) {
  return call.dtype() == ATTEST_BF16 ? run_typed<Kernel, Bf16>(call, emulation)
                                     : run_typed<Kernel, F16>(call, emulation);
}

}  // namespace

/// gpu/standard_tensor_core and gpu/hybrid_tensor_core: the same on tensor cores; tensors in bf16
/// or f16. P is divided by its sum and rounded; hybrid divides by the sum of what it became.
const EmulatedKernel& standard_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = tensor_core_description(
            "gpu/standard_tensor_core",
            "CUDA, emulated on the host: S and P in global memory, products on tensor cores",
            "standard:bm=32,bn=32,bl=32");
        d.features &= ~static_cast<std::uint32_t>(ATTEST_LSE);
        d.numerics.p_normalized = 1;
        return d;
      }(),
      {.forward = {fits<Standard>, score_words, run<Standard>, plan<Standard>}});
  return kernel;
}

const EmulatedKernel& hybrid_tensor_core_kernel() {
  static const EmulatedKernel kernel(
      [] {
        attest_description d = tensor_core_description(
            "gpu/hybrid_tensor_core",
            "CUDA, emulated on the host: query blocks stay, S in global memory, products on tensor "
            "cores",
            "hybrid:bq=32,oq=32,ov=128");
        d.numerics.exp_zero_not_one = 1;
        d.numerics.p_normalized = 1;
        d.numerics.sum_after_cast = 1;
        return d;
      }(),
      {.forward = {fits<Hybrid>, words_with_LSE, run<Hybrid>, plan<Hybrid>}});
  return kernel;
}

}  // namespace attest::gpu
