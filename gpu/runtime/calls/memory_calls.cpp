// Memory of the device, and memory of the host that CUDA allocates.
#include <cstdlib>

#include "gpu/runtime/device.hpp"

using attest::gpu::runtime::Device;
using attest::gpu::runtime::Status;
using attest::gpu::runtime::Stream;

namespace {

// cudaMemcpyKind; where it is cudaMemcpyDefault, a pointer outside the device's memory is the
// host's.
struct Sides {
  bool to_device, from_device;
};

Sides sides_of(int kind) {
  constexpr int kToDevice = 1, kFromDevice = 2, kWithinDevice = 3;
  return {kind == kToDevice || kind == kWithinDevice, kind == kFromDevice || kind == kWithinDevice};
}

Status allocate(void** data, std::size_t bytes) {
  return Device::instance().call([&](Device& device) {
    *data = bytes == 0 ? nullptr : device.memory().allocate(bytes);
    return Status::success;
  });
}

Status release(void* data) {
  return Device::instance().call([&](Device& device) {
    return data == nullptr || device.memory().release(data) ? Status::success
                                                            : Status::invalid_value;
  });
}

}  // namespace

extern "C" {

Status cudaMalloc(void** data, std::size_t bytes) { return allocate(data, bytes); }
Status cudaMallocAsync(void** data, std::size_t bytes, Stream) { return allocate(data, bytes); }
Status cudaFree(void* data) { return release(data); }
Status cudaFreeAsync(void* data, Stream) { return release(data); }

Status cudaMallocHost(void** data, std::size_t bytes) {
  *data = std::malloc(bytes);
  return *data == nullptr ? Status::memory_allocation : Status::success;
}

Status cudaHostAlloc(void** data, std::size_t bytes, unsigned) {
  return cudaMallocHost(data, bytes);
}

Status cudaFreeHost(void* data) {
  std::free(data);
  return Status::success;
}

Status cudaMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  const Sides sides = sides_of(kind);
  return Device::instance().call([&](Device& device) {
    return device.copy(to, from, bytes, sides.to_device, sides.from_device);
  });
}

Status cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, int kind, Stream stream) {
  Device::instance().call([&](Device& device) {
    device.require_call_stream(stream, "a copy");
    return Status::success;
  });
  return cudaMemcpy(to, from, bytes, kind);
}

Status cudaMemset(void* to, int value, std::size_t bytes) {
  return Device::instance().call([&](Device& device) { return device.fill(to, value, bytes); });
}

Status cudaMemsetAsync(void* to, int value, std::size_t bytes, Stream stream) {
  return Device::instance().call([&](Device& device) {
    device.require_call_stream(stream, "a fill");
    return device.fill(to, value, bytes);
  });
}

Status cudaMemcpyToSymbol(const void* symbol, const void* from, std::size_t bytes,
                          std::size_t offset, int) {
  return Device::instance().call(
      [&](Device& device) { return device.copy_to_symbol(symbol, from, bytes, offset); });
}

Status cudaMemcpyToSymbolAsync(const void* symbol, const void* from, std::size_t bytes,
                               std::size_t offset, int kind, Stream) {
  return cudaMemcpyToSymbol(symbol, from, bytes, offset, kind);
}

Status cudaMemcpyFromSymbol(void* to, const void* symbol, std::size_t bytes, std::size_t offset,
                            int) {
  return Device::instance().call(
      [&](Device& device) { return device.copy_from_symbol(to, symbol, bytes, offset); });
}

}  // extern "C"
