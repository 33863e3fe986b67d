#pragma once

#include <optional>
#include <string>
#include <vector>

#include "certify/worker/conduct/fault.hpp"
#include "certify/worker/process/arena.hpp"

namespace attest::certify::worker {

/// The buffers of one call: each on pages of its own between pages that nobody may touch, its end
/// at most kAlignment - 1 bytes before such a page, the rest of its pages filled with NaN bytes
/// (0xff) that are looked at afterwards. Read-only buffers are read-only pages.
class CallMemory {
 public:
  /// Every buffer begins at a multiple of so many bytes.
  static constexpr std::uint64_t kAlignment = 64;

  /// Buffers up to this size are copied whole, so all their pages exist, and the worker maps them
  /// at once: cheaper than a fault for each. Larger ones may have strides that leave most of them
  /// untouched.
  static constexpr std::uint64_t kWholeBytes = std::uint64_t{1} << 28;

  /// The buffers get addresses from `first` on, which no earlier call of the process had.
  CallMemory(Arena& arena, std::uint64_t first);

  /// Memory of the host alone, or a device's where the kernel runs on one.
  enum class Side : std::uint8_t { host, device };

  /// A buffer of uninitialised bytes; returns its index.
  std::size_t place(std::string_view name, std::size_t bytes, Access access,
                    Side side = Side::device);

  const std::string& name(std::size_t index) const { return buffers_[index].name; }

  /// Where the kernel sees buffer `index`, and where the certifier does (until the next `place`).
  std::uint64_t address(std::size_t index) const { return buffers_[index].address; }
  std::byte* bytes(std::size_t index) const;

  /// Tells the worker what to map. Returns the first address that is free for the next call.
  std::uint64_t publish() const;

  /// Finds bytes beyond a buffer's ends, within its pages, that were overwritten.
  /// [certify/worker/isolation_test "bytes beside a buffer"]
  std::optional<Fault> overrun() const;

  /// Explains what touching an address means to which the call had no right. `reserved` begins the
  /// addresses of the process's earliest call.  [certify/worker/isolation_test "addresses are
  /// explained"]
  Fault explain(std::uint64_t address, Access how, std::uint64_t reserved_begin,
                std::uint64_t reserved_end, const std::string& when) const;

 private:
  struct Buffer {
    std::string name;
    Access access = Access::read_only;
    Side side = Side::device;
    std::uint64_t address = 0;                     // of its first byte
    std::uint64_t size = 0;                        // bytes that belong to it
    std::uint64_t pages_begin = 0, pages_end = 0;  // addresses of its pages
    std::uint64_t offset = 0;                      // of pages_begin in the arena
  };

  Arena& arena_;
  std::uint64_t first_, next_address_, next_offset_;
  std::vector<Buffer> buffers_;
};

}  // namespace attest::certify::worker
