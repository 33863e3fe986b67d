#include "gpu/simt/async/tensor_shape.hpp"

#include <limits>
#include <string>

#include "core/error.hpp"

namespace attest::simt {
namespace {

constexpr std::int64_t kAlignment = 16, kMostStride = std::int64_t{1} << 40;
constexpr int kMostBox = 256;
constexpr char kAxes[] = "xyzuv";

[[noreturn]] void refuse(const std::string& text) { throw InvalidProblem("tensor map: " + text); }

int span_bytes(Swizzle swizzle) {
  switch (swizzle) {
    case Swizzle::none:
      return 0;
    case Swizzle::bytes_32:
      return 32;
    case Swizzle::bytes_64:
      return 64;
    case Swizzle::bytes_128:
      return 128;
  }
  return 0;
}

}  // namespace

void require_valid(const TensorShape& shape, const void* data) {
  if (shape.rank < 1 || shape.rank > TensorShape::kMostDimensions) {
    refuse(std::to_string(shape.rank) + " dimensions; it has 1 to 5");
  }
  if (data == nullptr || reinterpret_cast<std::uintptr_t>(data) % kAlignment != 0) {
    refuse("the tensor begins at no multiple of 16 bytes");
  }
  const int bytes = shape.element_bytes();
  for (int k = 0; k < TensorShape::kMostDimensions; ++k) {
    const std::string axis(1, kAxes[k]);
    const std::int64_t extent = shape.extents[k];
    if (k >= shape.rank && (extent != 1 || shape.box[k] != 1)) {
      refuse("extent and box along " + axis + " must be 1 in " + std::to_string(shape.rank) +
             " dimensions");
    }
    // Coordinates are 32 bits with a sign.
    if (extent < 1 || extent > std::numeric_limits<std::int32_t>::max()) {
      refuse("extent " + std::to_string(extent) + " along " + axis + "; it is 1 to 2^31 - 1");
    }
    if (shape.box[k] < 1 || shape.box[k] > kMostBox) {
      refuse("a box of " + std::to_string(shape.box[k]) + " along " + axis + "; it is 1 to " +
             std::to_string(kMostBox));
    }
    if (k == 0 || k >= shape.rank) continue;
    const std::int64_t stride = shape.stride_bytes[k - 1];
    if (stride < 0 || stride % kAlignment != 0 || stride >= kMostStride) {
      refuse("a stride of " + std::to_string(stride) + " bytes along " + axis +
             "; it must be a multiple of 16 below 2^40");
    }
  }
  const int row = shape.box[0] * bytes, span = span_bytes(shape.swizzle);
  if (row % kAlignment != 0) {
    refuse("a row of the box has " + std::to_string(row) + " bytes; it must be a multiple of 16");
  }
  if (span != 0 && row != span) {
    refuse("a row of the box has " + std::to_string(row) + " bytes, but its swizzle spans " +
           std::to_string(span));
  }
}

}  // namespace attest::simt
