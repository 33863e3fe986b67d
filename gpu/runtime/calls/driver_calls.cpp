// Functions of the driver that libraries ask the runtime for.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "gpu/ptx/memory/tensor_map.hpp"
#include "gpu/runtime/device.hpp"

using attest::InvalidProblem;
using attest::gpu::runtime::Device;
using attest::gpu::runtime::Status;
using attest::simt::Element;
using attest::simt::Swizzle;
using attest::simt::TensorShape;

namespace {

// CUtensorMapDataType. A copy moves bits, so that integers are as floats of their size.
Element element_of(int type) {
  constexpr int kUint8 = 0, kUint16 = 1, kUint32 = 2, kInt32 = 3, kFloat16 = 6, kFloat32 = 7,
                kBfloat16 = 9;
  switch (type) {
    case kUint8:
      return Element::byte;
    case kFloat16:
      return Element::f16;
    case kUint16:
    case kBfloat16:
      return Element::bf16;
    case kUint32:
    case kInt32:
    case kFloat32:
      return Element::f32;
    default:
      throw InvalidProblem(
          "cuTensorMapEncodeTiled: tensors of CUtensorMapDataType " + std::to_string(type) +
          " are not emulated; integers of 8, 16 and 32 bits, float16, bfloat16 and "
          "float32 are");
  }
}

void require_emulated(bool is, const char* what) {
  if (!is) throw InvalidProblem(std::string("cuTensorMapEncodeTiled: ") + what + " not emulated");
}

struct MapArguments {
  int type;
  std::uint32_t rank;
  const std::uint64_t *extents, *strides;
  const std::uint32_t *box, *steps;
  int interleave, swizzle, fill;
};

// Numbers that no driver takes stay such.
TensorShape shape_of(const MapArguments& given) {
  constexpr int kLastSwizzle = 3;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 40;
  require_emulated(given.interleave == 0, "interleaved layouts are");
  require_emulated(given.fill == 0, "filling with NaN is");
  require_emulated(given.swizzle >= 0 && given.swizzle <= kLastSwizzle,
                   "swizzles of other pieces than 16 bytes are");
  TensorShape shape;
  shape.element = element_of(given.type);
  shape.rank = static_cast<int>(given.rank);
  shape.swizzle = static_cast<Swizzle>(given.swizzle);
  for (std::uint32_t k = 0; k < std::min<std::uint32_t>(given.rank, 5); ++k) {
    require_emulated(k == 0 || given.steps[k] == 1, "strides of elements are");
    shape.extents[k] = static_cast<std::int64_t>(std::min(given.extents[k], kMost));
    shape.box[k] = static_cast<int>(std::min<std::uint32_t>(given.box[k], 1 << 20));
    if (k > 0)
      shape.stride_bytes[k - 1] = static_cast<std::int64_t>(std::min(given.strides[k - 1], kMost));
  }
  constexpr int kPiece = 16;
  const int row = shape.box[0] * shape.element_bytes(), span = kPiece << given.swizzle;
  require_emulated(given.swizzle == 0 || row >= span,
                   "rows of a box that do not fill the span of its swizzle are");
  return shape;
}

// Results are CUresult, whose numbers are those of cudaError_t here.
Status encode_tiled(void* map, int type, std::uint32_t rank, void* data,
                    const std::uint64_t* extents, const std::uint64_t* strides,
                    const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                    int swizzle, int /*promotion*/, int fill) {
  bool is_valid = true;
  const Status emulated = Device::instance().call([&](Device&) {
    const TensorShape shape =
        shape_of({type, rank, extents, strides, box, steps, interleave, swizzle, fill});
    try {
      const attest::ptx::TensorMapBytes bytes = attest::ptx::encode_tensor_map(data, shape);
      std::memcpy(map, bytes.data(), bytes.size());
    } catch (const InvalidProblem&) {  // as a driver refuses it
      is_valid = false;
    }
    return Status::success;
  });
  return is_valid ? emulated : Status::invalid_value;
}

Status entry_point(const char* symbol, void** function, int* found) {
  constexpr int kFound = 0;
  return Device::instance().call([&](Device&) {
    if (std::strcmp(symbol, "cuTensorMapEncodeTiled") != 0) {
      throw InvalidProblem(std::string("cudaGetDriverEntryPoint: the driver's ") + symbol +
                           " is not emulated; cuTensorMapEncodeTiled is");
    }
    auto* const encode = &encode_tiled;
    std::memcpy(function, &encode, sizeof encode);
    if (found != nullptr) *found = kFound;
    return Status::success;
  });
}

}  // namespace

extern "C" {

Status cudaGetDriverEntryPoint(const char* symbol, void** function, std::uint64_t, int* found) {
  return entry_point(symbol, function, found);
}
Status cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned,
                                        std::uint64_t, int* found) {
  return entry_point(symbol, function, found);
}

}  // extern "C"
