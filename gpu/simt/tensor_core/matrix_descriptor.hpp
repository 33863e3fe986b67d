#pragma once

#include <cstdint>

#include "gpu/simt/async/tensor_shape.hpp"

/// Matrices in shared memory as wgmma takes them: by a word of 64 bits (PTX ISA, asynchronous
/// warpgroup-level matrix multiply, matrix descriptor). In both worlds.
namespace attest::simt {

/// Which dimension of an operand lies contiguous: the one that is summed over (k), or its rows
/// (those of A, columns of B).
enum class Major : std::uint8_t { k, rows };

/// Fields of a descriptor, in bytes.
///
/// Elements of 16 bits lie in pieces of 8 rows by one swizzle's span (16 bytes without). Offsets
/// from one piece to the next:
///            k major                                   rows major
///   none     stride: along rows, leading: along k      stride: along rows, leading: along k
///   swizzle  stride: along rows, leading: unused       leading: along rows, stride: along k
struct MatrixDescriptor {
  std::uint32_t start = 0, leading = 0, stride = 0;
  Swizzle swizzle = Swizzle::none;
  std::uint32_t base_offset = 0;
};

ATTEST_BOTH_WORLDS constexpr std::uint64_t encode(const MatrixDescriptor& matrix) {
  // 128 bytes are 1, 64 are 2, 32 are 3.
  const std::uint64_t mode = (4 - static_cast<std::uint64_t>(matrix.swizzle)) % 4;
  const auto field = [](std::uint32_t bytes) { return std::uint64_t{bytes >> 4 & 0x3FFFU}; };
  return field(matrix.start) | field(matrix.leading) << 16 | field(matrix.stride) << 32 |
         std::uint64_t{matrix.base_offset & 7U} << 49 | mode << 62;
}

ATTEST_BOTH_WORLDS constexpr MatrixDescriptor decode(std::uint64_t bits) {
  const auto field = [bits](int shift) {
    return static_cast<std::uint32_t>(bits >> shift & 0x3FFFU) << 4;
  };
  return {field(0), field(16), field(32), static_cast<Swizzle>((4 - (bits >> 62)) % 4),
          static_cast<std::uint32_t>(bits >> 49 & 7U)};
}

/// Bytes from the start to the piece of 16 bytes (8 elements) that holds element (row, k), whose
/// contiguous coordinate is a multiple of 8; before it is swizzled.
ATTEST_BOTH_WORLDS constexpr std::uint32_t piece_offset(const MatrixDescriptor& matrix, Major major,
                                                        std::uint32_t row, std::uint32_t k) {
  constexpr std::uint32_t kPiece = 16, kElements = 8, kLines = 8;
  if (matrix.swizzle == Swizzle::none) {
    const std::uint32_t line = (major == Major::k ? row : k) % kLines;
    return line * kPiece + row / 8 * matrix.stride + k / 8 * matrix.leading;
  }
  const std::uint32_t span = kPiece << static_cast<std::uint32_t>(matrix.swizzle);
  if (major == Major::k) {
    return row % kLines * span + row / kLines * matrix.stride + k / kElements * kPiece;
  }
  const std::uint32_t in_span = span / kPiece * kElements;
  return k % kLines * span + k / kLines * matrix.stride + row % in_span / kElements * kPiece +
         row / in_span * matrix.leading;
}

}  // namespace attest::simt
