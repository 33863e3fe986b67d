#include "gpu/runtime/device_memory.hpp"

#include <algorithm>
#include <cstdint>

namespace attest::gpu::runtime {
namespace {

constexpr std::size_t kAlignment = 256;  // as cudaMalloc's
constexpr std::size_t kGap = 4096;       // between ranges, so that what leaves one meets none

}  // namespace

void DeviceMemory::set_call_buffers(std::span<const CallBuffer> buffers) {
  buffers_.assign(buffers.begin(), buffers.end());
}

void* DeviceMemory::allocate(std::size_t bytes) {
  constexpr unsigned char kPoison = 0xFF;
  Allocation made;
  const std::size_t all = bytes + kAlignment + kGap;
  made.memory = std::make_unique<std::byte[]>(all);
  std::fill_n(made.memory.get(), all, std::byte{kPoison});
  made.bytes = bytes;
  made.name = "allocation " + std::to_string(++allocated_);
  const auto begin = reinterpret_cast<std::uintptr_t>(made.memory.get());
  std::byte* const data = made.memory.get() + (kAlignment - begin % kAlignment) % kAlignment;
  allocations_.emplace(data, std::move(made));
  return data;
}

bool DeviceMemory::release(void* data) { return allocations_.erase(data) == 1; }

simt::GlobalMemory DeviceMemory::global() const {
  simt::GlobalMemory global;
  for (const CallBuffer& each : buffers_) {
    auto* const data = static_cast<std::byte*>(each.data);
    const auto bytes = static_cast<std::int64_t>(each.bytes);
    if (each.is_writable) {
      global.add(each.name, data, bytes);
    } else {
      global.add(each.name, static_cast<const std::byte*>(data), bytes);
    }
  }
  for (const auto& [data, each] : allocations_) {
    global.add(each.name, static_cast<std::byte*>(const_cast<void*>(data)),
               static_cast<std::int64_t>(each.bytes));
  }
  return global;
}

bool DeviceMemory::has(const void* data, std::size_t bytes, bool is_written) const {
  const simt::GlobalMemory all = global();
  const int range = all.find_nearest(data);
  return all.has(range, data, bytes, 1) &&
         (!is_written || all.ranges()[static_cast<std::size_t>(range)].writable);
}

}  // namespace attest::gpu::runtime
