#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "gpu/simt/diagnosis.hpp"

namespace attest::simt {

/// Whether each access to shared memory is checked against those before it. Needs kernels that are
/// compiled with hooks (gpu/simt/hooks.cpp); takes about ten times as long.
enum class SharedChecks : std::uint8_t { off, on };

/// The shared memory of one block: dynamic first, then static variables as they are met.
///
/// Words begin as NaN, so that what reads them before they are written shows. With checks on, two
/// accesses of which one writes are ordered when a barrier of the block lies between them, or both
/// lanes are of one warp and a __syncwarp lies between them: collectives order nothing else.
/// [gpu/simt/shared_memory_test]
class SharedMemory {
 public:
  SharedMemory();
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  /// Empty again, with so many bytes of dynamic memory.
  void begin(std::int64_t dynamic_bytes, std::int64_t limit_bytes, SharedChecks checks,
             std::uint32_t warps);

  void* dynamic() const { return bytes_; }
  /// The variable of that name, whose address is its `tag`. Null when it does not fit.
  void* variable(const void* tag, std::size_t bytes, std::size_t alignment);

  std::int64_t used_bytes() const { return static_cast<std::int64_t>(used_); }
  std::int64_t limit_bytes() const { return static_cast<std::int64_t>(limit_); }

  bool contains(const void* pointer) const {
    const auto* byte = static_cast<const std::byte*>(pointer);
    return byte >= bytes_ && byte < bytes_ + kMostBytes;
  }

  enum class Access : std::uint8_t { read, write, atomic };

  /// What is wrong with an access of a lane; empty when nothing is, or when checks are off and it
  /// stays within. `fault` is set with the text.
  std::string check(const void* pointer, std::size_t bytes, Access access, std::uint32_t lane,
                    std::uint32_t warp, Fault& fault);

  /// An asynchronous copy to those bytes begins, or has ended and counts as the lane's own write.
  std::string begin_copy(const void* pointer, std::size_t bytes, std::uint32_t lane, Fault& fault);
  void end_copy(const void* pointer, std::size_t bytes, std::uint32_t lane, std::uint32_t warp);

  void block_barrier() { ++block_epoch_; }
  void warp_barrier(std::uint32_t warp) { ++warp_epochs_[warp]; }

 private:
  static constexpr std::size_t kMostBytes = std::size_t{256} << 10;
  static constexpr std::size_t kGranule = 2;  // bytes: the smallest type that lanes share

  struct Variable {
    const void* tag;
    std::size_t offset;
  };

  // The last write to a granule and the reads since.
  struct Shadow {
    enum class Written : std::uint8_t { never, plain, atomic, copying };
    std::uint32_t write_block = 0, write_warp = 0;  // epochs
    std::uint32_t read_block = 0, read_warp = 0;
    std::uint16_t writer = 0, reader = 0;  // lanes
    Written written = Written::never;
    bool readers_in_warp = false;   // more than one lane in this warp epoch
    bool readers_in_block = false;  // lanes of another warp in this block epoch
  };

  struct Accessor {
    std::uint32_t lane, warp;
  };
  bool unordered_write(const Shadow& shadow, Accessor by) const;
  bool unordered_read(const Shadow& shadow, Accessor by) const;
  void note_read(Shadow& shadow, Accessor by) const;
  void note_write(Shadow& shadow, Accessor by, Shadow::Written how) const;
  void forget(std::size_t begin, std::size_t end);
  std::string describe(std::size_t offset, std::size_t bytes) const;

  std::byte* bytes_ = nullptr;
  std::size_t used_ = 0, limit_ = 0;
  std::vector<Variable> variables_;
  SharedChecks checks_ = SharedChecks::off;
  std::vector<Shadow> shadows_;
  std::uint32_t block_epoch_ = 1;
  std::vector<std::uint32_t> warp_epochs_;
};

}  // namespace attest::simt
