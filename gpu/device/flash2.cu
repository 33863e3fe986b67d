#include "gpu/device/launch.cuh"
#include "gpu/device/pointers.cuh"
#include "gpu/kernels/flash2.cuh"

namespace attest::gpu::cuda {
namespace {

template <class Mem>
attest_status run(const attest_forward_args& args, TrafficSink sink) {
  return launch_all("flash2", args.stream, [&](const auto& launch) {
    flash2_launches(arguments_of<Mem>(args, sink), launch);
  });
}

}  // namespace

attest_status flash2_forward(const attest_forward_args& args, TrafficSink sink) {
  const attest_problem& problem = *args.problem;
  if (problem.dtype != ATTEST_F32 || problem.head_dim_v > kMostColumns) return ATTEST_UNSUPPORTED;
  return sink == nullptr ? run<simt::Uncounted>(args, sink) : run<simt::Counted>(args, sink);
}

}  // namespace attest::gpu::cuda
