#include "gpu/simt/testing/seeded_bugs.hpp"

#include <array>
#include <vector>

#include "gpu/simt/traffic.hpp"

namespace attest::simt {
namespace {

constexpr int kRows = 40, kColumns = 32, kTile = 16, kLanes = 64;

// Each of two warps sums half of a tile's rows, lane by column, and adds the transposed partial
// sums through a strip of its own; `total` counts the rows with an addition of each warp's first
// lane.
template <SeededBug bug>
__global__ void sum_rows(GlobalPointer<const float> rows, const float* raw_rows,
                         GlobalPointer<float> sums, GlobalPointer<float> total) {
  Counted mem(Counted::Sink{});
  ATTEST_SHARED(float, tile, [kTile][kColumns]);
  ATTEST_SHARED(float, strip, [2][kColumns]);
  ATTEST_SHARED(float, seen, [4]);
  const int lane = static_cast<int>(threadIdx.x), warp = lane / 32, column = lane % 32;
  if (lane == 0) seen[0] = 0;
  float sum = 0;
  for (int first = 0; first < kRows; first += kTile) {
    if (bug != SeededBug::no_barrier_before_load) __syncthreads();
    const int last = bug == SeededBug::past_the_tile ? kTile + 16 : kTile;
    for (int row = warp; row < last; row += 2) {
      const bool exists = first + row < kRows;
      if (bug == SeededBug::uninitialised_rows && row >= kTile - 2) continue;
      float word = 0;
      if (exists) {
        word = bug == SeededBug::past_the_policy
                   ? raw_rows[(first + row) * kColumns + column]
                   : mem.load(rows, (first + row) * kColumns + column);
      }
      (&tile[0][0])[row * kColumns + column] = word;
    }
    if (bug != SeededBug::no_barrier_after_load) __syncthreads();
    for (int row = kTile / 2 * warp; row < kTile / 2 * (warp + 1); ++row) {
      strip[warp][column] = tile[row][column];
      if (bug != SeededBug::no_warp_barrier_after_write) __syncwarp();
      if (bug == SeededBug::misaligned_row && column == 0) {
        sum += shared_load4(&strip[warp][1]).x;
      }
      sum += strip[warp][31 - column];
      if (bug != SeededBug::no_warp_barrier_before_write) __syncwarp();
    }
    if (column == 0) {
      if (bug == SeededBug::plain_addition) {
        seen[0] += kTile / 2;
      } else {
        atomicAdd(&seen[0], static_cast<float>(kTile) / 2);
      }
    }
  }
  __syncthreads();
  mem.add(sums, 31 - column, sum);
  if (lane == 0) mem.store(total, 0, seen[0]);
}

template <SeededBug bug>
SeededRun run(const Emulation& emulation) {
  std::vector<float> rows(static_cast<std::size_t>(kRows * kColumns));
  for (std::size_t k = 0; k < rows.size(); ++k) rows[k] = static_cast<float>(k % 7);
  std::array<float, kColumns> sums{}, expected{};
  for (std::size_t k = 0; k < rows.size(); ++k) expected[k % kColumns] += rows[k];
  float total = 0;
  GlobalMemory memory;
  const auto in = memory.add("rows", static_cast<const float*>(rows.data()), kRows * kColumns);
  const auto out = memory.add("sums", sums.data(), kColumns);
  const auto count = memory.add("total", &total, 1);
  SeededRun result;
  result.report = launch({{1, 1, 1}, {kLanes, 1, 1}, 0}, emulation, memory, sum_rows<bug>, in,
                         static_cast<const float*>(rows.data()), out, count);
  constexpr float kCounted = 48;  // rows of three tiles
  result.right = sums == expected && total == kCounted;
  return result;
}

}  // namespace

SeededRun run_seeded(SeededBug bug, const Emulation& emulation) {
  switch (bug) {
    case SeededBug::none:
      return run<SeededBug::none>(emulation);
    case SeededBug::no_barrier_after_load:
      return run<SeededBug::no_barrier_after_load>(emulation);
    case SeededBug::no_barrier_before_load:
      return run<SeededBug::no_barrier_before_load>(emulation);
    case SeededBug::no_warp_barrier_after_write:
      return run<SeededBug::no_warp_barrier_after_write>(emulation);
    case SeededBug::no_warp_barrier_before_write:
      return run<SeededBug::no_warp_barrier_before_write>(emulation);
    case SeededBug::uninitialised_rows:
      return run<SeededBug::uninitialised_rows>(emulation);
    case SeededBug::past_the_tile:
      return run<SeededBug::past_the_tile>(emulation);
    case SeededBug::misaligned_row:
      return run<SeededBug::misaligned_row>(emulation);
    case SeededBug::past_the_policy:
      return run<SeededBug::past_the_policy>(emulation);
    case SeededBug::plain_addition:
      return run<SeededBug::plain_addition>(emulation);
  }
  return run<SeededBug::none>(emulation);
}

}  // namespace attest::simt
