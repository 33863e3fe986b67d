#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/access_order.hpp"

/// Order of accesses of different blocks, made by fences of the device's scope and atomic
/// operations on one place: what comes before a fence that comes before such an operation comes
/// before what comes after a later operation there. Barriers of a block carry this from thread to
/// thread. [gpu/ptx/execution/block_order_test]
namespace attest::simt {

/// Fences of one block. An access has a time: barriers of the block and fences before it.
class BlockFences {
 public:
  using LaneTimes = std::map<std::uint32_t, std::uint32_t>;

  /// Accesses that a fence covers: of all lanes before a time, of some lanes before another.
  struct Covered {
    std::uint32_t before = 0;
    LaneTimes of_lanes;
  };

  void begin() { *this = {}; }
  bool any() const { return count_ != 0; }
  std::uint32_t time(const AccessOrder& order) const { return order.block_time() + count_; }

  void fence(std::uint32_t lane, const AccessOrder& order);
  /// Returns what the fences cover that come before what the lane does now.
  Covered before(std::uint32_t lane, const AccessOrder& order) const;

 private:
  std::uint32_t count_ = 0;
  std::uint32_t block_time_ = 0;  // of the last fence
  Covered latest_, earlier_;      // by the fences of that time, and by those before
};

/// Atomic operations of all blocks of a launch, by place. Blocks may run on several threads.
class BlockOrder {
 public:
  /// A lane that accesses, with the fences of its block.
  struct Accessor {
    Index3 block;
    std::uint32_t lane = 0;
    const AccessOrder* order = nullptr;
    const BlockFences* fences = nullptr;
  };
  /// Operations of others that a block's lanes have seen.
  struct Seen {
    const void* place;
    std::size_t operations;  // so many of those there
    std::uint32_t lane, block_time;
  };

  /// Before a lane's atomic operation: others may see it, with what fences before it cover.
  void release(const void* place, const Accessor& accessor);
  /// After it: adds those before to what its block has seen.
  void acquire(const void* place, const Accessor& accessor, std::vector<Seen>& seen) const;
  /// Access of another block: a write, the latest of what may be reads of several of its lanes, or
  /// an atomic operation, which others have seen by its place.
  struct Access {
    enum class Kind : std::uint8_t { write, read, operation };
    Kind kind;
    Index3 block;
    std::uint32_t lane, time;
  };
  /// Tells whether it comes before what the lane does now.
  bool is_before(const Access& access, const Accessor& accessor,
                 const std::vector<Seen>& seen) const;

 private:
  struct Operation {
    Index3 block;
    BlockFences::Covered covered;

    bool covers(const Access& access) const;
  };
  std::atomic<bool> any_ = false;
  mutable std::mutex lock_;
  std::map<const void*, std::vector<Operation>> operations_;
};

}  // namespace attest::simt
