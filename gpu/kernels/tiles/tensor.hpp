#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

/// Where the elements of an ABI tensor lie.
namespace attest::gpu {

/// The first element; null where there is no tensor.
template <class T>
T* elements(const attest_tensor* tensor) {
  if (tensor == nullptr) return nullptr;
  return reinterpret_cast<T*>(static_cast<char*>(tensor->data) + tensor->byte_offset);
}

/// Elements from the first to the last, both included; 0 when an extent is.
inline std::int64_t span_of(const attest_tensor& tensor) {
  std::int64_t span = 1;
  for (int axis = 0; axis < tensor.ndim; ++axis) {
    if (tensor.shape[axis] == 0) return 0;
    span += (tensor.shape[axis] - 1) * tensor.strides[axis];
  }
  return span;
}

}  // namespace attest::gpu
