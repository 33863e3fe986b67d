#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/tensor.hpp"

namespace attest {

/// Returns `count` elements of the last axis from `first` on, in the same memory.
inline TensorView columns_of(const TensorView& tensor, std::string_view name, std::int64_t first,
                             std::int64_t count) {
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < tensor.rank(); ++axis) axes.push_back(tensor.axis(axis));
  axes.back().extent = count;
  const std::int64_t bytes =
      first * axes.back().stride * static_cast<std::int64_t>(size_bytes(tensor.dtype()));
  return {name, static_cast<std::byte*>(tensor.data()) + bytes, tensor.dtype(), axes};
}

}  // namespace attest
