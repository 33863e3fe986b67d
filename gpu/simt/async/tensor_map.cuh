#pragma once

#include <cuda.h>
#include <cuda_runtime.h>

#include <string>

#include "core/error.hpp"
#include "gpu/simt/async/tensor_shape.hpp"
#include "gpu/simt/simt.hpp"

/// Maps of tensors for the copies of a device.
namespace attest::simt {
inline namespace ATTEST_SIMT_WORLD {

/// A parameter of a kernel: `const __grid_constant__ TensorMap map`.
struct TensorMap {
  CUtensorMap encoded;
  TensorShape shape;
};

/// Maps a tensor in the device's memory. Throws InvalidProblem where require_valid does,
/// InternalError where the driver has no tensor maps or refuses this one.
inline TensorMap map_tensor(const void* data, const TensorShape& shape) {
  require_valid(shape, data);
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  constexpr unsigned kFirstVersion = 12000;  // of CUDA, that has it
  if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, kFirstVersion,
                                       cudaEnableDefault, &found) != cudaSuccess ||
      found != cudaDriverEntryPointSuccess) {
    throw InternalError("the CUDA driver has no tensor maps");
  }
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  if (shape.element == Element::f16) type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  if (shape.element == Element::byte) type = CU_TENSOR_MAP_DATA_TYPE_UINT8;
  if (shape.element == Element::f32) type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  if (shape.swizzle == Swizzle::bytes_32) swizzle = CU_TENSOR_MAP_SWIZZLE_32B;
  if (shape.swizzle == Swizzle::bytes_64) swizzle = CU_TENSOR_MAP_SWIZZLE_64B;
  if (shape.swizzle == Swizzle::bytes_128) swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  constexpr int kDimensions = TensorShape::kMostDimensions;
  cuuint64_t extents[kDimensions], strides[kDimensions - 1];
  cuuint32_t box[kDimensions], steps[kDimensions];
  for (int k = 0; k < kDimensions; ++k) {
    extents[k] = static_cast<cuuint64_t>(shape.extents[k]);
    box[k] = static_cast<cuuint32_t>(shape.box[k]);
    steps[k] = 1;
    if (k > 0) strides[k - 1] = static_cast<cuuint64_t>(shape.stride_bytes[k - 1]);
  }
  TensorMap map;
  map.shape = shape;
  const CUresult result = reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
      &map.encoded, type, static_cast<cuuint32_t>(shape.rank), const_cast<void*>(data), extents,
      strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_NONE,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw InternalError("the CUDA driver refuses a tensor map, result " +
                        std::to_string(static_cast<int>(result)));
  }
  return map;
}

}  // namespace ATTEST_SIMT_WORLD
}  // namespace attest::simt
