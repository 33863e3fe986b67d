#include "gpu/device/buffer.hpp"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "gpu/device/kernels/require.cuh"

namespace attest::gpu::cuda {
namespace {

std::vector<unsigned char> copy_of(const unsigned char* from, std::size_t bytes) {
  std::vector<unsigned char> copy(bytes);
  require(cudaMemcpy(copy.data(), from, bytes, cudaMemcpyDeviceToHost), "copy from the device");
  return copy;
}

std::ptrdiff_t touched(const std::vector<unsigned char>& guard) {
  return std::count_if(guard.begin(), guard.end(),
                       [](unsigned char byte) { return byte != Buffer::kPoison; });
}

}  // namespace

Buffer::Buffer(std::string name, std::size_t bytes) : name_(std::move(name)), bytes_(bytes) {
  const std::size_t all = bytes + 2 * kGuardBytes;
  void* memory = nullptr;
  require(cudaMalloc(&memory, all), name_ + ": " + std::to_string(all) + " bytes");
  base_ = static_cast<unsigned char*>(memory);
  const cudaError_t filled = cudaMemset(base_, kPoison, all);
  if (filled != cudaSuccess) static_cast<void>(cudaFree(base_));  // no destructor runs
  require(filled, name_ + ": fill with NaN");
}

// A failure here happened before, and is an error of every call that waits.
Buffer::~Buffer() { static_cast<void>(cudaFree(base_)); }

Buffer::Buffer(Buffer&& other) noexcept
    : name_(std::move(other.name_)),
      bytes_(other.bytes_),
      base_(std::exchange(other.base_, nullptr)) {}

void Buffer::upload(const void* from) const {
  require(cudaMemcpy(data(), from, bytes_, cudaMemcpyHostToDevice), name_ + ": copy to the device");
}

std::vector<std::byte> Buffer::download() const {
  std::vector<std::byte> copy(bytes_);
  require(cudaMemcpy(copy.data(), data(), bytes_, cudaMemcpyDeviceToHost),
          name_ + ": copy from the device");
  return copy;
}

std::optional<std::string> Buffer::overrun() const {
  const std::ptrdiff_t before = touched(copy_of(base_, kGuardBytes)),
                       after = touched(copy_of(base_ + kGuardBytes + bytes_, kGuardBytes));
  if (before == 0 && after == 0) return std::nullopt;
  return name_ + ": " + std::to_string(before > 0 ? before : after) + " bytes written " +
         (before > 0 ? "before" : "behind") + " the buffer on the device";
}

}  // namespace attest::gpu::cuda
