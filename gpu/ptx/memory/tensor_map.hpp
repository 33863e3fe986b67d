#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "gpu/simt/async/tensor_copy.hpp"

namespace attest::ptx {

/// A tensor map as kernels hold it: 128 bytes, of which a device has its own form.
inline constexpr std::size_t kTensorMapBytes = 128;
using TensorMapBytes = std::array<std::byte, kTensorMapBytes>;

/// Throws InvalidProblem where simt::require_valid does.
TensorMapBytes encode_tensor_map(const void* data, const simt::TensorShape& shape);

/// None for bytes that are no tensor map.
std::optional<simt::TensorMap> decode_tensor_map(std::span<const std::byte> bytes);

}  // namespace attest::ptx
