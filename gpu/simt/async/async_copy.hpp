#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/shared_memory.hpp"

/// Host functions behind the words of async_copy.cuh. Each throws InternalError outside of a lane.
namespace attest::simt {

/// The asynchronous copies of one lane that have not ended. Nothing arrives before the wait that
/// covers it: the latest that a device may be.
struct AsyncCopies {
  static constexpr std::size_t kMostBytes = 16;

  struct Copy {
    void* to;
    std::array<std::byte, kMostBytes> from;
    std::size_t bytes;
    std::uint64_t group;
  };

  /// Ends the lane's copies of groups before that one.
  void end(std::uint64_t before, SharedMemory& shared, std::uint32_t lane);

  /// None is pending, as at a block's beginning.
  void clear() { pending.clear(), group = 0; }

  std::vector<Copy> pending;  // ascending by group
  std::uint64_t group = 0;    // that copies join until the next commit
};

/// `from` is read at once. A place outside of shared memory, or one that other accesses do not
/// leave alone, is a diagnosis.  [gpu/simt/async/async_copy_test]
void begin_async_copy(void* shared, const void* from, std::size_t bytes, SourceLine where);
/// Copies since the last commit are a group.
void commit_async_copies();
/// Ends those of all groups but the latest `most_pending`; a copy without a commit is in none.
void wait_for_async_copies(std::uint64_t most_pending);
/// Ends all, also those without a commit.
void wait_for_all_async_copies();

}  // namespace attest::simt
