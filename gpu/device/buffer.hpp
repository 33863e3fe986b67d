#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace attest::gpu::cuda {

/// Memory of the current device between two guard regions. Guards and contents begin with every bit
/// set (NaN), so that a read beside the buffer spoils the result and a write there is seen.
class Buffer {
 public:
  static constexpr std::size_t kGuardBytes = 4096;
  static constexpr unsigned char kPoison = 0xFF;

  /// `name` is for messages. Throws DeviceError when there is no memory.
  Buffer(std::string name, std::size_t bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer& operator=(Buffer&&) = delete;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const std::string& name() const { return name_; }
  std::size_t bytes() const { return bytes_; }
  /// At a multiple of 256 bytes.
  void* data() const { return base_ + kGuardBytes; }

  /// Both wait until the copy is done.
  void upload(const void* from) const;
  std::vector<std::byte> download() const;

  /// Tells what was written beside the buffer: "K: 4 bytes before the buffer". Nothing when the
  /// guards are whole.  [gpu/device/device_test "a write beside a buffer is found"]
  std::optional<std::string> overrun() const;

 private:
  std::string name_;
  std::size_t bytes_;
  unsigned char* base_ = nullptr;
};

}  // namespace attest::gpu::cuda
