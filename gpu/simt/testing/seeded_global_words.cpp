#include <array>
#include <cstdint>

#include "gpu/simt/memory/traffic.hpp"
#include "gpu/simt/testing/seeded_bugs.hpp"

namespace attest::simt {
namespace {

// "shows: …" names the bugs that are found at the line below.
constexpr unsigned kBlocks = 3, kLanes = 64;

// Lanes of a block leave a word each and take their opposite's, twice; blocks add to one sum. The
// bytes of `marks` are neighbours that different lanes write.
template <SeededBug bug>
__global__ void exchange_words(GlobalPointer<float> words, GlobalPointer<float> taken,
                               GlobalPointer<float> sum, GlobalPointer<std::uint8_t> marks) {
  Counted mem(Counted::Sink{});
  const unsigned lane = threadIdx.x, opposite = kLanes - 1 - lane, first = blockIdx.x * kLanes;
  for (unsigned turn = 0; turn < 2; ++turn) {
    // shows: no_barrier_between, one_warp_barrier, next_block_word
    mem.store(words, first + lane, static_cast<float>(lane + turn));
    if (bug == SeededBug::one_warp_barrier) {
      __syncwarp();
    } else if (bug != SeededBug::no_barrier_between) {
      __syncthreads();
    }
    // shows: no_barrier_between, one_warp_barrier
    const float word = mem.load(words, first + opposite);
    __syncthreads();
    mem.store(taken, first + lane, word);
  }
  // One lane alone changes the word that it wrote itself.
  mem.store(taken, first + lane, mem.load(taken, first + lane) + 1);
  mem.store(marks, first + lane, static_cast<std::uint8_t>(lane));
  if (bug == SeededBug::next_block_word && blockIdx.x + 1 < kBlocks) {
    // shows: next_block_word
    mem.load(words, first + kLanes);
  }
  if (lane != 0) return;
  if (bug == SeededBug::store_for_add && blockIdx.x == 0) {
    // shows: store_for_add
    mem.store(sum, 0, 1.0F);
  } else {
    // shows: store_for_add, read_of_sum
    mem.add(sum, 0, 1.0F);
  }
  if (bug == SeededBug::one_word_of_all) {
    // shows: one_word_of_all
    mem.store(sum, 1, 1.0F);
  }
  if (bug == SeededBug::read_of_sum && blockIdx.x == 1) {
    // shows: read_of_sum
    mem.load(sum, 0);
  }
}

template <SeededBug bug>
SeededRun run(const Emulation& emulation) {
  std::array<float, kBlocks * kLanes> words{}, taken{};
  std::array<std::uint8_t, kBlocks * kLanes> marks{};
  std::array<float, 2> sum{};
  GlobalMemory memory;
  const auto in = memory.add("words", words.data(), kBlocks * kLanes);
  const auto out = memory.add("taken", taken.data(), kBlocks * kLanes);
  const auto total = memory.add("sum", sum.data(), 2);
  const auto marked = memory.add("marks", marks.data(), kBlocks * kLanes);
  SeededRun result;
  // A launch orders all before it with all after it.
  for (int launches = 0; launches < 2; ++launches) {
    result.report += launch({{kBlocks, 1, 1}, {kLanes, 1, 1}, 0}, emulation, memory,
                            exchange_words<bug>, in, out, total, marked);
  }
  result.right = sum[0] == 2 * kBlocks;
  for (unsigned k = 0; k < kBlocks * kLanes; ++k) {
    const unsigned lane = k % kLanes;
    result.right &= taken[k] == static_cast<float>(kLanes - lane + 1) && marks[k] == lane;
  }
  return result;
}

}  // namespace

SeededRun run_global_words(SeededBug bug, const Emulation& emulation) {
  switch (bug) {
    case SeededBug::no_barrier_between:
      return run<SeededBug::no_barrier_between>(emulation);
    case SeededBug::one_warp_barrier:
      return run<SeededBug::one_warp_barrier>(emulation);
    case SeededBug::next_block_word:
      return run<SeededBug::next_block_word>(emulation);
    case SeededBug::one_word_of_all:
      return run<SeededBug::one_word_of_all>(emulation);
    case SeededBug::store_for_add:
      return run<SeededBug::store_for_add>(emulation);
    case SeededBug::read_of_sum:
      return run<SeededBug::read_of_sum>(emulation);
    default:
      return run<SeededBug::none_of_global_words>(emulation);
  }
}

}  // namespace attest::simt
