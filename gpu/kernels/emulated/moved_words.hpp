#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/dtype/dtype.hpp"
#include "gpu/simt/launch.hpp"

/// Words that emulated launches move.
namespace attest::gpu {

struct MovedWords {
  std::int64_t reads = 0, writes = 0;

  friend bool operator==(const MovedWords&, const MovedWords&) = default;
  friend MovedWords operator+(MovedWords a, MovedWords b) {
    return {a.reads + b.reads, a.writes + b.writes};
  }
};

/// Words of tensors that were moved, by name.
using MovedByTensor = std::map<std::string, MovedWords>;
MovedWords total(const MovedByTensor& moved);

/// Returns the words that launches moved, their traffic being in the order of the memory's tensors:
/// every access to a tensor is a word whatever its width. Lengths, boolean masks, slopes, sinks
/// and biases are left out: data that tells which pairs are visible, how far apart they are and
/// where a head's rows begin is no operand of the schedules. Lists are operands of those that have
/// them: an index of theirs is a word, an offset two. `dtype` is that of Q, K, V, O and their
/// gradients. [gpu/kernels/schedule_words_test]
MovedByTensor moved_by_tensor(const simt::GlobalMemory& memory,
                              const std::vector<simt::GlobalTraffic>& traffic, DType dtype);

}  // namespace attest::gpu
