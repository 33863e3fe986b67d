#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gpu/simt/diagnosis.hpp"
#include "gpu/simt/memory/access_order.hpp"

namespace attest::simt {

/// Check of each access to shared memory against those before it. Needs kernels that are
/// compiled with hooks (gpu/simt/hooks.cpp); takes about ten times as long.
enum class SharedChecks : std::uint8_t { off, on };

/// The shared memory of one block: dynamic first, then static variables as they are met.
///
/// Words begin as NaN, so that what reads them before they are written shows. With checks on, each
/// variable lies alone among bytes that belong to none, and two accesses of which one writes are
/// ordered when a barrier of the block lies between them, or both lanes are of one warp and
/// __syncwarps between them order the two: collectives order nothing else. With checks off,
/// variables lie as on a device, and what leaves the memory of all ends the program: pages around
/// it are closed.  [gpu/simt/memory/shared_memory_test]
class SharedMemory {
 public:
  static constexpr std::size_t kMostStaticBytes = std::size_t{48} << 10;

  /// Throws InternalError when no memory can be mapped.
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Empty again, with so many bytes of dynamic memory.
  void begin(std::int64_t dynamic_bytes, std::int64_t limit_bytes, SharedChecks checks,
             std::uint32_t warps);

  void* dynamic() const { return bytes_; }
  /// The variable whose address is `tag`. Null when it does not fit: static variables may have
  /// 48 KiB, all memory what the block may have.
  void* variable(const void* tag, const char* name, std::size_t bytes, std::size_t alignment);

  std::int64_t used_bytes() const { return static_cast<std::int64_t>(used_); }
  std::int64_t limit_bytes() const { return static_cast<std::int64_t>(limit_); }
  /// "32000 of 49152 static ones are taken, 33024 of 232448 in all".
  std::string taken() const;

  /// Tells whether an address is in the memory, or so near that nothing else is there.
  bool contains(const void* pointer) const {
    const auto* byte = static_cast<const std::byte*>(pointer);
    return byte >= mapped_ && byte < mapped_ + kMappedBytes;
  }

  /// `exchange` is atomic, too, but needs no value to be there. `rewrite` writes the value that is
  /// there: two such writes are no race, whichever comes first.
  enum class Access : std::uint8_t { read, write, atomic, exchange, rewrite };

  /// Returns the fault of a lane's access. Without checks, tests only that the access stays within.
  std::optional<Finding> check(const void* pointer, std::size_t bytes, Access access,
                               std::uint32_t lane);

  /// Who writes asynchronously: copies of a lane, or tensor copies.
  enum class Copier : std::uint8_t { lane, tensor };

  /// An asynchronous copy to those bytes begins, or has ended and counts as the lane's own write,
  /// but is visible to asynchronous reads: no library fences after cp.async.
  std::optional<Finding> begin_copy(const void* pointer, std::size_t bytes, std::uint32_t lane,
                                    Copier copier = Copier::lane);
  void end_copy(const void* pointer, std::size_t bytes, std::uint32_t lane);

  /// Notes a lane's access to dynamic memory; where its first byte is. Null, with nothing noted,
  /// where it takes more than a glance to tell that the access is in order: then `check` does.
  ///
  /// Requires: a power of two of bytes.
  std::byte* glance(std::uint64_t offset, std::size_t bytes, Access access, std::uint32_t lane) {
    if (!is_plain_place(offset, bytes)) return nullptr;
    if (is_checked() && !note_plain(whole(offset, bytes), access, lane)) return nullptr;
    return bytes_ + offset;
  }
  /// The same where an asynchronous copy of the lane begins.
  std::byte* glance_copy(std::uint64_t offset, std::size_t bytes, std::uint32_t lane) {
    if (!is_plain_place(offset, bytes)) return nullptr;
    if (is_checked()) {
      Shadow* const shadow = whole(offset, bytes);
      if (!note_plain(shadow, Access::write, lane)) return nullptr;
      shadow->set(Shadow::kCopying, true);
      shadow->copier = Copier::lane;
    }
    return bytes_ + offset;
  }
  /// Who begins an asynchronous read: `sets` times so many lanes in a row. A write comes before it
  /// when it comes before what one lane of each set does.
  struct Readers {
    std::uint32_t first = 0, lanes = 1, sets = 1;
  };

  /// A read of those bytes begins that ends later: nothing may write there meanwhile, and what
  /// lanes have written is read only where a fence made it visible.
  std::optional<Finding> begin_async_read(const void* pointer, std::size_t bytes, Readers readers);
  /// It has ended, and counts as a read of the lane.
  void end_async_read(const void* pointer, std::size_t bytes, std::uint32_t lane);
  /// Makes what the lane has written or seen visible to asynchronous reads (fence.proxy.async).
  void fence_async(std::uint32_t lane);

  /// Marks bytes as an mbarrier, or no longer as one: nothing else may read or write an mbarrier.
  void set_barrier(const void* pointer, std::size_t bytes, bool is_barrier);

  /// The address that a device has for a byte, as descriptors have it: checks move variables apart.
  /// None where there is no variable.
  std::optional<std::uint32_t> address(const void* pointer) const;
  /// The other way round, null unless all the bytes are of one variable.
  std::byte* at(std::uint32_t address, std::size_t bytes) const;
  /// "16 bytes at byte 4 of 'tile'".
  std::string describe(const void* pointer, std::size_t bytes) const;

  bool is_checked() const { return checks_ == SharedChecks::on; }
  AccessOrder& order() { return order_; }
  const AccessOrder& order() const { return order_; }
  void block_barrier() { order_.block_barrier(); }
  void warp_barrier(std::uint32_t warp, std::uint32_t lanes) {
    if (checks_ == SharedChecks::on) order_.warp_barrier(warp, lanes);
  }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;
  // Untouched pages cost nothing, so that far misses are found, too.
  static constexpr std::size_t kMappedBytes = std::size_t{96} << 20, kBefore = kMappedBytes / 3;
  static constexpr std::size_t kRedZoneBytes = std::size_t{64} << 10;

  struct Variable {
    const void* tag;
    std::string name;
    std::byte* begin;
    std::size_t bytes;
    std::size_t offset;  // on a device, and of its shadows
  };

  // History of bytes that were never accessed but together.
  struct Shadow {
    enum State : std::uint8_t { kWritten = 1, kCopying = 2, kBarrier = 4 };
    std::uint8_t state = 0;  // a set of these
    Copier copier = Copier::lane;
    std::uint16_t async_readers = 0;
    std::uint16_t writer = 0;      // the last lane
    std::uint32_t write_time = 0;  // of a lane's own write, by fences before it; 0: of none
    std::uint32_t changed = 0;     // the block's time of the latest write or atomic operation
    Accesses writes, reads, atomics;

    bool is(State which) const { return (state & which) != 0; }
    void set(State which, bool value) {
      state = static_cast<std::uint8_t>(value ? state | which : state & ~which);
    }
    void clear();
  };

  // Histories of rows of 16 bytes, of words, of halves and of bytes, each as long as no access is
  // to less. Most accesses are to whole rows.
  struct Parts {
    std::size_t shift;  // log2 of the bytes of each
    std::vector<Shadow> shadows{};
    std::vector<std::uint8_t> apart{};  // those whose parts have a history each
  };
  static constexpr std::size_t kRow = 16;

  bool is_plain_place(std::uint64_t offset, std::size_t bytes) const {
    return offset <= dynamic_bytes_ && bytes <= dynamic_bytes_ - offset &&
           (offset & (bytes - 1)) == 0;
  }
  // The history of just those bytes, where there is one; the first is at a multiple of their
  // number.
  Shadow* whole(std::size_t offset, std::size_t bytes) {
    for (Parts& parts : parts_) {
      const std::size_t part = offset >> parts.shift;
      if (parts.apart[part] == 0) {
        return bytes == std::size_t{1} << parts.shift ? &parts.shadows[part] : nullptr;
      }
    }
    return nullptr;
  }
  // Notes an access before which, since the block's last barrier, nothing was that it could be in
  // conflict with; else false.
  bool note_plain(Shadow* shadow, Access access, std::uint32_t lane) {
    if (shadow == nullptr || shadow->changed == order_.block_time()) return false;
    if (access == Access::read) {
      const bool is_plain = shadow->state == Shadow::kWritten;
      if (is_plain) shadow->reads.add(lane, order_);
      return is_plain;
    }
    const bool is_plain = (access == Access::write || access == Access::rewrite) &&
                          shadow->state <= Shadow::kWritten && shadow->async_readers == 0 &&
                          !shadow->reads.has_any_now(order_);
    if (is_plain) note_write(*shadow, lane);
    return is_plain;
  }

  void open_pages(SharedChecks checks);
  void place(const void* tag, const char* name, std::byte* begin, std::size_t bytes,
             std::size_t offset);
  const Variable* holder(const std::byte* pointer, std::size_t bytes) const;
  void take_apart(std::size_t level, std::size_t part);
  template <class Function>
  void for_each_shadow(std::size_t offset, std::size_t bytes, Function&& function);
  // Visits the shadows of bytes that one variable holds; with checks alone.
  template <class Function>
  void for_each_shadow_at(const void* pointer, std::size_t bytes, Function&& function);
  std::optional<Finding> conflict(const Shadow& shadow, Access access, std::uint32_t lane) const;
  std::optional<Finding> conflict(const Shadow& shadow, Readers readers) const;
  std::string who(std::uint32_t lane) const;
  bool is_visible_to_async(const Shadow& shadow) const;
  void note(Shadow& shadow, Access access, std::uint32_t lane);
  void note_change(Shadow& shadow, std::uint32_t lane) {
    shadow.set(Shadow::kWritten, true);
    shadow.writer = static_cast<std::uint16_t>(lane);
    shadow.write_time = order_.is_engine(lane) ? 0 : fences_;
    shadow.changed = order_.block_time();
  }
  // A plain write that comes after all that there is.
  void note_write(Shadow& shadow, std::uint32_t lane) {
    note_change(shadow, lane);
    // Accesses after this write come after all that the write came after.
    shadow.atomics.clear();
    shadow.reads.clear();
    shadow.writes.clear();
    shadow.writes.add(lane, order_);
  }

  std::byte* mapped_ = nullptr;
  std::byte* bytes_ = nullptr;
  std::size_t used_ = 0, static_bytes_ = 0, dynamic_bytes_ = 0, limit_ = 0;
  std::vector<Variable> variables_;
  SharedChecks checks_ = SharedChecks::off;
  std::array<Parts, 4> parts_{{{4}, {2}, {1}, {0}}};
  AccessOrder order_;
  std::uint32_t fences_ = 0;               // fence.proxy.async of any lane
  std::vector<std::uint32_t> last_fence_;  // by lane, in the order of all
};

}  // namespace attest::simt
