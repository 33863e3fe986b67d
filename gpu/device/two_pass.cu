#include "gpu/device/launch.cuh"
#include "gpu/device/pointers.cuh"
#include "gpu/kernels/two_pass.cuh"

namespace attest::gpu::cuda {
namespace {

template <class Mem>
attest_status run(const attest_backward_args& args, TrafficSink sink) {
  return launch_all("two_pass", args.stream, [&](const auto& launch) {
    two_pass_launches(arguments_of<Mem>(args, sink), launch);
  });
}

}  // namespace

attest_status two_pass_backward(const attest_backward_args& args, TrafficSink sink) {
  const attest_problem& problem = *args.problem;
  if (problem.dtype != ATTEST_F32 || widest_head(shape_of(problem)) > WidestTile::kMostColumns) {
    return ATTEST_UNSUPPORTED;
  }
  return sink == nullptr ? run<simt::Uncounted>(args, sink) : run<simt::Counted>(args, sink);
}

}  // namespace attest::gpu::cuda
