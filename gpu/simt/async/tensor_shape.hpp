#pragma once

#include <cstdint>

// Marks functions that kernels call, too.
#ifdef __CUDACC__
#define ATTEST_BOTH_WORLDS __host__ __device__
#else
#define ATTEST_BOTH_WORLDS
#endif

/// Shape of a tensor as a tensor map describes it, in both worlds.
namespace attest::simt {

/// How 16-byte pieces change places in shared memory, so that a column lies in all banks: within
/// spans of so many bytes, bits 4 to 6 of an address by its bits 7 to 9.
enum class Swizzle : std::uint8_t { none, bytes_32, bytes_64, bytes_128 };

enum class Element : std::uint8_t { bf16, f16, f32, byte };

/// A tensor of up to five dimensions, the innermost first, and the box that one copy moves.
struct TensorShape {
  static constexpr int kMostDimensions = 5;

  Element element = Element::bf16;
  int rank = 2;  // 0: a row of bytes that is no tensor (cp.async.bulk)
  std::int64_t extents[kMostDimensions] = {1, 1, 1, 1, 1};
  std::int64_t stride_bytes[kMostDimensions - 1] = {0, 0, 0, 0};  // of the outer dimensions
  int box[kMostDimensions] = {1, 1, 1, 1, 1};
  Swizzle swizzle = Swizzle::none;

  ATTEST_BOTH_WORLDS constexpr int element_bytes() const {
    return element == Element::f32 ? 4 : element == Element::byte ? 1 : 2;
  }
  ATTEST_BOTH_WORLDS constexpr int box_bytes() const {
    int elements = 1;
    for (int k = 0; k < kMostDimensions; ++k) elements *= box[k];
    return elements * element_bytes();
  }
  /// Returns how many elements of a box at that coordinate exist along a dimension.
  ATTEST_BOTH_WORLDS constexpr int inside(int dimension, int coordinate) const {
    const std::int64_t begin = coordinate < 0 ? 0 : coordinate;
    std::int64_t end = std::int64_t{coordinate} + box[dimension];
    if (end > extents[dimension]) end = extents[dimension];
    return end > begin ? static_cast<int>(end - begin) : 0;
  }
  /// The bytes of a box of up to three dimensions that exist.
  ATTEST_BOTH_WORLDS constexpr int inside_bytes(int x, int y, int z) const {
    return inside(0, x) * inside(1, y) * inside(2, z) * element_bytes();
  }
};

/// Throws InvalidProblem where cuTensorMapEncodeTiled refuses: at most 256 elements of the box
/// along a dimension, addresses, strides and rows of the box at multiples of 16 bytes. Also where
/// rows of the box do not fill the spans of its swizzle, which is not emulated.
/// [gpu/simt/async/tensor_copy_test "maps that no device takes"]
void require_valid(const TensorShape& shape, const void* data);

}  // namespace attest::simt
