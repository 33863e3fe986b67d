#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/runtime/calls/call_interface.hpp"
#include "gpu/simt/memory/global_memory.hpp"

namespace attest::gpu::runtime {

/// The device's memory, which is the host's: buffers of the call, and what the library allocated.
class DeviceMemory {
 public:
  /// In place of the earlier call's.
  void set_call_buffers(std::span<const CallBuffer> buffers);

  /// NaN bytes, apart from every other range. Throws std::bad_alloc.
  void* allocate(std::size_t bytes);
  /// Tells whether it was allocated.
  bool release(void* data);

  /// Every range that a kernel may touch.
  simt::GlobalMemory global() const;

  /// Tells whether the bytes lie within one range, a writable one where they are written.
  bool has(const void* data, std::size_t bytes, bool is_written) const;

 private:
  struct Allocation {
    std::unique_ptr<std::byte[]> memory;
    std::size_t bytes = 0;
    std::string name;
  };

  std::vector<CallBuffer> buffers_;
  std::map<const void*, Allocation> allocations_;  // by the first byte
  int allocated_ = 0;
};

}  // namespace attest::gpu::runtime
