#pragma once

#include <cstdint>

/// Launches whose blocks all lie in x, emulated or on a device.
namespace attest::gpu {

/// Blocks of so many rows for every (batch, head).
inline std::int64_t blocks_for(std::int64_t rows, int block_rows, std::int64_t heads,
                               std::int64_t batch) {
  return (rows + block_rows - 1) / block_rows * heads * batch;
}

/// The most that a device takes in x.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

inline constexpr std::int64_t bytes_of_floats(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(float));
}

/// A launch but for its kernel and arguments; there may be no block. Shared memory that the kernel
/// itself declares is static.
struct BlockLine {
  std::int64_t blocks = 0;
  int lanes = 0;
  std::int64_t dynamic_shared_bytes = 0, static_shared_bytes = 0;
};

}  // namespace attest::gpu
