#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/dtype.hpp"
#include "core/problem.hpp"
#include "gpu/simt/launch.hpp"

/// Words of a kernel beside words of its schedule, for the tests of this room.
namespace attest::gpu::testing {

struct MovedWords {
  std::int64_t reads = 0, writes = 0;

  friend bool operator==(const MovedWords&, const MovedWords&) = default;
  friend MovedWords operator+(MovedWords a, MovedWords b) {
    return {a.reads + b.reads, a.writes + b.writes};
  }
};
std::ostream& operator<<(std::ostream& out, const MovedWords& words);

/// Of tensors that were moved, by name.
using MovedByTensor = std::map<std::string, MovedWords>;
MovedWords total(const MovedByTensor& moved);

/// What launches moved: every access to a tensor is a word whatever its width. What tells which
/// pairs are visible and how far apart they are is no operand of the schedules: lengths, masks and
/// slopes are left out. `dtype` is that of Q, K, V, O and their gradients.
MovedByTensor moved_by_tensor(const simt::GlobalMemory& memory, const simt::LaunchReport& report,
                              DType dtype);
MovedWords moved_words(const simt::GlobalMemory& memory, const simt::LaunchReport& report);

/// What the schedule of cpu/schedules moves, counted by walking through it.
MovedWords counted_words(const std::string& schedule, const Problem& problem);

/// What a kernel saves whose key blocks serve all query heads of their group: K and V are read once
/// for the group, and dK and dV are not left in slow memory from head to head. Tiles are those of
/// the key blocks.
MovedWords group_savings(const Problem& problem, std::int64_t block_q, std::int64_t block_k);

}  // namespace attest::gpu::testing
