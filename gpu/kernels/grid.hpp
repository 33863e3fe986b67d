#pragma once

#include <cstdint>

/// How many blocks a launch has, emulated or on a device.
namespace attest::gpu {

/// Blocks of so many rows for every (batch, head); all lie in x of the grid.
inline std::int64_t blocks_for(std::int64_t rows, int block_rows, std::int64_t heads,
                               std::int64_t batch) {
  return (rows + block_rows - 1) / block_rows * heads * batch;
}

/// The most that a device takes in x.
inline constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

}  // namespace attest::gpu
