#include <array>
#include <vector>

#include "gpu/simt/async/async_copy.cuh"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {
namespace {

// "shows: …" names the bugs that are found at the line below.
constexpr int kTiles = 5, kLanes = 64, kWords = 4 * kLanes, kStages = 3;

// Sums tiles word by word, two of them under way while one is used. A lane copies four words and
// uses those of its mirror image.
__global__ void sum_tiles(SeededBug bug, GlobalPointer<const float> tiles,
                          GlobalPointer<float> sums) {
  Counted mem(Counted::Sink{});
  ATTEST_SHARED(float, stages, [kStages][kWords]);
  const int lane = static_cast<int>(threadIdx.x), mirror = kLanes - 1 - lane;
  const auto begin = [&](int tile) {
    if (tile < kTiles) {
      const int stage = bug == SeededBug::copy_past_the_stages ? tile : tile % kStages;
      float* const to = &stages[0][0] + stage * kWords + 4 * lane;
      // shows: no_wait, no_commit, no_barrier_after_wait, copy_over_readers, copy_past_the_stages
      cp_async_16(to, mem, tiles, tile * kWords + 4 * lane);
    }
    if (bug != SeededBug::no_commit) cp_async_commit();  // an empty group at the end
  };
  float sum[4] = {};
  for (int tile = 0; tile < kStages - 1; ++tile) begin(tile);
  for (int tile = 0; tile < kTiles; ++tile) {
    if (bug == SeededBug::wait_for_too_few) {
      cp_async_wait<kStages - 1>();
    } else if (bug != SeededBug::no_wait) {
      cp_async_wait<kStages - 2>();
    }
    if (bug == SeededBug::copy_over_readers) begin(tile + kStages - 1);
    if (bug != SeededBug::no_barrier_after_wait) __syncthreads();
    if (bug != SeededBug::copy_over_readers) begin(tile + kStages - 1);
    for (int k = 0; k < 4; ++k) {
      // shows: wait_for_too_few, no_wait, no_commit, no_barrier_after_wait, copy_over_readers
      sum[k] += stages[tile % kStages][4 * mirror + k];
    }
  }
  for (int k = 0; k < 4; ++k) mem.store(sums, 4 * mirror + k, sum[k]);
}

}  // namespace

SeededRun run_copies(SeededBug bug, const Emulation& emulation) {
  std::vector<float> tiles(static_cast<std::size_t>(kTiles * kWords));
  for (std::size_t k = 0; k < tiles.size(); ++k) tiles[k] = static_cast<float>(k % 11);
  std::array<float, kWords> sums{}, expected{};
  for (std::size_t k = 0; k < tiles.size(); ++k) expected[k % kWords] += tiles[k];
  GlobalMemory memory;
  const auto in = memory.add("tiles", static_cast<const float*>(tiles.data()), kTiles * kWords);
  const auto out = memory.add("sums", sums.data(), kWords);
  SeededRun result;
  result.report =
      launch({{1, 1, 1}, {kLanes, 1, 1}, 0}, emulation, memory, sum_tiles, bug, in, out);
  constexpr std::int64_t kBytes = std::int64_t{4} * kTiles * kWords;
  result.right = sums == expected && result.report.traffic[0] == GlobalTraffic{kBytes, 0};
  return result;
}

}  // namespace attest::simt
