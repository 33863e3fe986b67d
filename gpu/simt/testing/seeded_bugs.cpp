#include "gpu/simt/testing/seeded_bugs.hpp"

#include <array>
#include <vector>

#include "gpu/simt/memory/traffic.hpp"

namespace attest::simt {
namespace {

// "shows: …" names the bugs that are found at the line below.
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
  if (lane == 0 && bug != SeededBug::uninitialised_sum) seen[0] = 0;
  float sum = 0;
  for (int first = 0; first < kRows; first += kTile) {
    if (bug != SeededBug::no_barrier_before_load) __syncthreads();
    const int begin = bug == SeededBug::before_the_tile ? warp - 2 : warp;
    const int last = bug == SeededBug::past_the_tile ? kTile + 1 : kTile;
    for (int row = begin; row < last; row += 2) {
      const bool exists = row >= 0 && first + row < kRows;
      if (bug == SeededBug::uninitialised_rows && row >= kTile - 2) continue;
      float word = 0;
      if (exists) {
        const int place = (first + row) * kColumns + column;
        if (bug == SeededBug::past_the_policy) {
          // shows: past_the_policy
          word = raw_rows[place];
        } else {
          word = mem.load(rows, place);
        }
      }
      float* const to = &tile[0][0] + row * kColumns + column;
      // shows: no_barrier_before_load, no_barrier_after_load, past_the_tile, before_the_tile
      *to = word;
    }
    if (bug != SeededBug::no_barrier_after_load) __syncthreads();
    for (int row = kTile / 2 * warp; row < kTile / 2 * (warp + 1); ++row) {
      // shows: no_barrier_before_load, no_barrier_after_load, uninitialised_rows
      const float word = tile[row][column];
      // shows: no_warp_barrier_after_write, no_warp_barrier_before_write
      strip[warp][column] = word;
      if (bug != SeededBug::no_warp_barrier_after_write) __syncwarp();
      if (bug == SeededBug::misaligned_row && column == 0) {
        // shows: misaligned_row
        sum += shared_load4(&strip[warp][1]).x;
      }
      if (bug == SeededBug::wide_past_the_strip && warp == 1) {
        const float* const end = strip[warp] + kColumns;
        // shows: wide_past_the_strip
        sum += shared_load4(end).x;
      }
      // shows: no_warp_barrier_after_write, no_warp_barrier_before_write
      sum += strip[warp][31 - column];
      if (bug != SeededBug::no_warp_barrier_before_write) __syncwarp();
    }
    if (column == 0) {
      if (bug == SeededBug::plain_addition) {
        // shows: plain_addition
        seen[0] += kTile / 2;
      } else {
        // shows: uninitialised_sum, early_sum
        atomicAdd(&seen[0], static_cast<float>(kTile) / 2);
      }
    }
  }
  if (bug != SeededBug::early_sum) __syncthreads();
  mem.add(sums, 31 - column, sum);
  if (lane == 0) {
    // shows: early_sum
    const float all = seen[0];
    mem.store(total, 0, all);
  }
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

// Lanes turn the bytes of their group of eight round, through shared memory and by a barrier of the
// group alone.
template <SeededBug bug>
__global__ void turn_groups(GlobalPointer<std::uint8_t> out) {
  Counted mem(Counted::Sink{});
  ATTEST_SHARED(std::uint8_t, bytes, [kLanes]);
  const unsigned lane = threadIdx.x, in_warp = lane % 32;
  const unsigned group = 0xffU << (in_warp / 8 * 8), half = 0xfU << (in_warp / 4 * 4);
  const unsigned waits = bug == SeededBug::barrier_of_too_few ? half : group;
  for (unsigned turn = 0; turn < 2; ++turn) {
    // shows: barrier_of_too_few
    bytes[lane] = static_cast<std::uint8_t>(lane + turn);
    __syncwarp(waits);
    // shows: barrier_of_too_few
    mem.store(out, lane, bytes[lane ^ 7U]);
    __syncwarp(waits);
  }
}

template <SeededBug bug>
SeededRun run_groups(const Emulation& emulation) {
  std::array<std::uint8_t, kLanes> turned{};
  GlobalMemory memory;
  const auto out = memory.add("turned", turned.data(), kLanes);
  SeededRun result;
  result.report = launch({{1, 1, 1}, {kLanes, 1, 1}, 0}, emulation, memory, turn_groups<bug>, out);
  result.right = true;
  for (unsigned lane = 0; lane < kLanes; ++lane) result.right &= turned[lane] == (lane ^ 7U) + 1;
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
    case SeededBug::uninitialised_sum:
      return run<SeededBug::uninitialised_sum>(emulation);
    case SeededBug::early_sum:
      return run<SeededBug::early_sum>(emulation);
    case SeededBug::before_the_tile:
      return run<SeededBug::before_the_tile>(emulation);
    case SeededBug::wide_past_the_strip:
      return run<SeededBug::wide_past_the_strip>(emulation);
    case SeededBug::none_of_groups:
      return run_groups<SeededBug::none>(emulation);
    case SeededBug::barrier_of_too_few:
      return run_groups<SeededBug::barrier_of_too_few>(emulation);
    case SeededBug::none_of_global_words:
    case SeededBug::no_barrier_between:
    case SeededBug::one_warp_barrier:
    case SeededBug::next_block_word:
    case SeededBug::one_word_of_all:
    case SeededBug::store_for_add:
    case SeededBug::read_of_sum:
      return run_global_words(bug, emulation);
    case SeededBug::none_of_copies:
    case SeededBug::no_wait:
    case SeededBug::wait_for_too_few:
    case SeededBug::no_commit:
    case SeededBug::no_barrier_after_wait:
    case SeededBug::copy_over_readers:
    case SeededBug::copy_past_the_stages:
      return run_copies(bug, emulation);
    case SeededBug::none_of_products:
    case SeededBug::no_barrier_before_ldmatrix:
    case SeededBug::odd_row_address:
    case SeededBug::swapped_fragments:
    case SeededBug::not_transposed:
      return run_products(bug, emulation);
    case SeededBug::none_of_tensor_copies:
    case SeededBug::no_tensor_wait:
    case SeededBug::one_warp_waits:
    case SeededBug::copy_over_words:
    case SeededBug::unused_copy:
    case SeededBug::no_fence_before_store:
    case SeededBug::no_store_commit:
      return run_tensor_copies(bug, emulation);
    case SeededBug::none_of_fragments:
    case SeededBug::no_fence_before_product:
    case SeededBug::fragment_without_fence:
    case SeededBug::fragment_under_way:
      return run_fragments(bug, emulation);
  }
  return run<SeededBug::none>(emulation);
}

}  // namespace attest::simt
