#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/access_order.hpp"
#include "gpu/simt/memory/block_order.hpp"
#include "gpu/simt/memory/global_memory.hpp"

namespace attest::simt {

/// Accesses of one launch to the same element of a tensor that nothing orders, one of which writes
/// and not both are additions or other strong accesses. Strong reads before a write are not looked
/// at.
///
/// Blocks are in order where fences and atomic operations make one (BlockOrder), which the traffic
/// policy's addition does not: it gives no value back by which one could wait for another. Lanes of
/// one block are in the order of its barriers (AccessOrder), launches in that of their calls: each
/// has races of its own. Tensor copies are not looked at. [gpu/simt/hooks_test "every race in
/// global memory is found in every order, at its line"]
///
/// Cost: 64 bytes for each 16 bytes that are read of a tensor that the launch may write, 232 where
///       they are written, and 168 for each part of them that is accessed by itself; other tensors
///       need none. Blocks may run on several threads.
class GlobalRaces {
 public:
  static constexpr std::uint16_t kNobody = 0xFFFF;
  static constexpr std::uint16_t kLate = 0xFFFF;  // a time that no fence covers
  struct Known {
    Index3 block;
    std::uint16_t lane = kNobody;
    std::uint16_t time = kLate;  // of the block's fences

    bool is_other_than(const Index3& accessing) const {
      return lane != kNobody && block != accessing;
    }
    friend bool operator==(const Known& a, const Known& b) {
      return a.block == b.block && a.lane == b.lane;
    }
  };
  /// Bytes that a thread reads while another may write them; the writer, nobody where there are
  /// several.
  struct LateRead {
    const std::byte* begin;
    std::size_t bytes;
    Known writer;
  };

  using LateReads = std::map<const std::byte*, LateRead>;  // by their first byte

  /// `late_reads`: of the same launch when it was run before. Races of theirs are left out.
  explicit GlobalRaces(const GlobalMemory& memory, const LateReads& late_reads = {});

  /// Who accesses: a lane of a block of the launch's grid, in the order of the block's barriers,
  /// and of its fences and atomic operations where these are followed.
  struct Accessor {
    Index3 block;
    std::uint32_t lane = 0;
    const AccessOrder* order = nullptr;
    const BlockFences* fences = nullptr;
    const std::vector<BlockOrder::Seen>* seen = nullptr;

    Known known() const {
      const std::uint32_t time = fences == nullptr ? kLate : fences->time(*order);
      return {block, static_cast<std::uint16_t>(lane),
              static_cast<std::uint16_t>(std::min<std::uint32_t>(time, kLate))};
    }
  };

  /// Tells whether the launch may write some of those bytes: accesses elsewhere need no look.
  bool may_race(const void* pointer, std::size_t bytes) const {
    const auto* const byte = static_cast<const std::byte*>(pointer);
    return std::any_of(regions_.begin(), regions_.end(), [byte, bytes](const Region& each) {
      return byte < each.end && byte + bytes > each.begin;
    });
  }
  /// Remembers reads, of that many bytes by each of the lanes, where nothing was written before;
  /// which lanes' those are. The others' want a look: `check`.
  ///
  /// Requires: addresses within one tensor and multiples of `bytes`, a power of two up to 16.
  std::uint32_t note_reads(const std::uint64_t* addresses, std::uint32_t lanes, std::size_t bytes,
                           const Accessor& first);

  /// Remembers an access within a tensor; what of those before it nothing orders with this one, as
  /// ", which lane 3 of block 1,0,0 wrote; nothing orders the two".
  std::optional<std::string> note(const void* pointer, std::size_t bytes, GlobalUse use,
                                  const Accessor& accessor);
  /// The same as a finding that says what the lane does with which bytes of the tensor.
  std::optional<Finding> check(const GlobalRange& range, const void* pointer, std::size_t bytes,
                               GlobalUse use, const Accessor& accessor);

  /// The order that atomic operations make between blocks.
  BlockOrder& blocks() { return blocks_; }

  /// Races found between a read and a write, which another run of the launch may judge: from the
  /// memory as it was, with what is known of them.
  bool found_late_reads() const { return !found_late_.empty(); }
  const LateReads& late_reads() const { return found_late_; }
  void restore_memory() const;

  /// In that run: whether some are known, whether a read is one, and whether its value matters.
  bool knows_late_reads() const { return !known_late_.empty(); }
  bool is_late(const void* pointer, std::size_t bytes, const Accessor& accessor) const;
  void note_late_matters() { late_matters_ = true; }
  bool late_matters() const { return late_matters_; }

 private:
  // The accesses of one kind to an element: those of the latest block, and one of another.
  class Uses {
   public:
    void clear() { latest_.lane = other_.lane = kNobody; }
    bool any() const { return latest_.lane != kNobody; }
    void add(const Accessor& accessor) {
      if (!any() || latest_.block != accessor.block) {
        other_ = latest_;
        in_latest_.clear();
      }
      latest_ = accessor.known();
      in_latest_.add(accessor.lane, *accessor.order);
    }
    std::optional<Known> unordered(const Accessor& accessor, const BlockOrder& blocks,
                                   BlockOrder::Access::Kind kind) const;

   private:
    Known latest_, other_;
    Accesses in_latest_;
  };
  struct Element {
    Uses reads, writes, additions;
  };
  static constexpr std::size_t kRowBytes = 16;
  // A row that is not read alone, or not as a whole, has histories of its parts, which have its
  // reads then: parts of the size of the least access to them.
  struct alignas(64) Row {
    Uses reads;
    std::unique_ptr<Element[]> parts;
  };
  static_assert(sizeof(Row) == 64, "a look at a row that is read takes one line of a cache");

  static constexpr std::size_t kChunkRows = 64;
  // Rows that lie together share a lock, and are there once one of them is accessed.
  struct Chunk {
    std::mutex lock;
    std::unique_ptr<Row[]> rows;
    std::array<std::uint8_t, kChunkRows> part_bytes;
    // Rows that are written, as they were before.
    std::uint64_t kept = 0;
    std::unique_ptr<std::byte[]> before;
  };
  // Bytes that tensors have which the launch may write, and that touch one another: rows of several
  // may take turns.
  struct Region {
    const std::byte *begin, *end;
    std::vector<Chunk> chunks{};

    // Rows lie at multiples of their size.
    std::size_t row_of(const std::byte* byte) const {
      return reinterpret_cast<std::uintptr_t>(byte) / kRowBytes -
             reinterpret_cast<std::uintptr_t>(begin) / kRowBytes;
    }
    // The bytes of a row, from the first to after the last.
    std::pair<const std::byte*, const std::byte*> bytes_of(std::size_t row) const {
      const std::size_t before = reinterpret_cast<std::uintptr_t>(begin) % kRowBytes;
      const std::byte* const first = begin - before + row * kRowBytes;
      return {std::max(first, begin), std::min(first + kRowBytes, end)};
    }
  };
  Region* region_of(const std::byte* byte);
  // A row, whose lock is held.
  struct Held {
    Row& row;
    std::uint8_t& part_bytes;

    // Has parts of at most that size then.
    void take_apart(std::size_t bytes) const;
  };
  static Held hold(Region& region, std::size_t row, std::unique_lock<std::mutex>& lock);

  struct Conflict {
    Known with;
    const char* verb;
    bool is_of_read;
  };
  std::optional<Conflict> conflict(const Element& element, GlobalUse use,
                                   const Accessor& accessor) const;
  // Words for a conflict over those bytes, unless it is known.
  std::optional<std::string> judge(const Conflict& conflict, const std::byte* begin,
                                   std::size_t bytes, GlobalUse use, const Accessor& accessor);
  const LateRead* known_late(const std::byte* begin, std::size_t bytes) const;
  static void keep(const Region& region, std::size_t row, Chunk& chunk);
  static void add(Element& element, GlobalUse use, const Accessor& accessor);

  std::vector<Region> regions_;
  BlockOrder blocks_;
  std::mutex late_lock_;
  LateReads found_late_;
  std::vector<LateRead> known_late_;  // ascending, apart from one another
  std::atomic<bool> late_matters_ = false;
};

}  // namespace attest::simt
