#include <array>
#include <vector>

#include "gpu/simt/async/tensor_copy.cuh"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {
namespace {

// "shows: …" names the bugs that are found at the line below.
constexpr int kColumns = 8, kRows = 8, kPlanes = 5, kLanes = 64, kStages = 2;

// Sums planes word by word: one is under way while another is used. All lanes of a warp use what
// its first lane has waited for.
__global__ void sum_planes(SeededBug bug, const __grid_constant__ TensorMap planes,
                           const __grid_constant__ TensorMap sums) {
  Counted mem(Counted::Sink{});
  ATTEST_DYNAMIC_SHARED(float, words);
  ATTEST_SHARED(std::uint64_t, full, [kStages]);
  const int lane = static_cast<int>(threadIdx.x), warp = lane / 32;
  const auto begin = [&](int plane) {
    float* const to = words + plane % kStages * kLanes;
    mbarrier_arrive_expect_tx(&full[plane % kStages], kLanes * sizeof(float));
    // shows: no_tensor_wait, copy_over_words, unused_copy
    cp_async_bulk_tensor_3d(to, mem, planes, 0, 0, plane, &full[plane % kStages]);
  };
  if (lane == 0) {
    for (int stage = 0; stage < kStages; ++stage) mbarrier_init(&full[stage], 1);
    fence_mbarrier_init();
    begin(0);
  }
  __syncthreads();
  float sum = 0;
  for (int plane = 0; plane < kPlanes; ++plane) {
    const int next = plane + 1;
    const int last = bug == SeededBug::unused_copy ? kPlanes + 1 : kPlanes;
    if (lane == 0 && next < last) begin(next);
    const bool waits = bug != SeededBug::no_tensor_wait &&
                       (bug != SeededBug::one_warp_waits || warp == 0) && lane % 32 == 0;
    if (waits) mbarrier_wait(&full[plane % kStages], static_cast<unsigned>(plane / kStages) % 2);
    __syncwarp();
    // shows: no_tensor_wait, one_warp_waits, copy_over_words
    sum += words[plane % kStages * kLanes + lane];
    if (bug != SeededBug::copy_over_words) __syncthreads();
  }
  float* const out = words + kStages * kLanes;
  out[lane] = sum;
  if (bug != SeededBug::no_fence_before_store) fence_proxy_async();
  __syncthreads();
  if (lane != 0) return;
  // shows: no_fence_before_store, no_store_commit
  cp_async_bulk_tensor_2d_store(mem, sums, 0, 0, out);
  if (bug != SeededBug::no_store_commit) cp_async_bulk_commit();
  cp_async_bulk_wait_read<0>();
  // shows: no_store_commit
  out[7] = 0;
}

}  // namespace

SeededRun run_tensor_copies(SeededBug bug, const Emulation& emulation) {
  constexpr std::size_t kWords = kLanes;
  std::vector<float> planes(kPlanes * kWords);
  for (std::size_t k = 0; k < planes.size(); ++k) planes[k] = static_cast<float>(k % 11);
  std::vector<float> sums(kWords), expected(kWords);
  for (std::size_t k = 0; k < planes.size(); ++k) expected[k % kWords] += planes[k];
  GlobalMemory memory;
  const auto in = memory.add("planes", static_cast<const float*>(planes.data()), kPlanes * kLanes);
  const auto out = memory.add("sums", sums.data(), kLanes);
  TensorShape shape;
  shape.element = Element::f32;
  shape.extents[0] = shape.box[0] = kColumns;
  shape.extents[1] = shape.box[1] = kRows;
  shape.stride_bytes[0] = kColumns * sizeof(float);
  const TensorMap to = map_tensor(out, shape);
  shape.rank = 3;
  shape.extents[2] = kPlanes;
  shape.stride_bytes[1] = kLanes * sizeof(float);
  const TensorMap from = map_tensor(in, shape);
  SeededRun result;
  result.report = launch({{1, 1, 1}, {kLanes, 1, 1}, (kStages + 1) * kWords * sizeof(float)},
                         emulation, memory, sum_planes, bug, from, to);
  const std::vector<GlobalTraffic> traffic{
      {static_cast<std::int64_t>(planes.size() * sizeof(float)), 0},
      {0, static_cast<std::int64_t>(sums.size() * sizeof(float))}};
  result.right = sums == expected && result.report.traffic == traffic;
  return result;
}

}  // namespace attest::simt
