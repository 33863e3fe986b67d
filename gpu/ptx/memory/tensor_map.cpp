#include "gpu/ptx/memory/tensor_map.hpp"

#include <cstdint>
#include <cstring>

namespace attest::ptx {
namespace {

// Libraries change a bit of the second word for the driver's sake (CUTLASS clears bit 21), so that
// nothing lies there.
struct Encoded {
  std::uint64_t tag, unused;
  std::byte* data;
  simt::TensorShape shape;
};
static_assert(sizeof(Encoded) <= kTensorMapBytes);
constexpr std::uint64_t kTag = 0x7061'4D72'6F73'6E54;

}  // namespace

TensorMapBytes encode_tensor_map(const void* data, const simt::TensorShape& shape) {
  simt::require_valid(shape, data);
  const Encoded encoded{kTag, 0, static_cast<std::byte*>(const_cast<void*>(data)), shape};
  TensorMapBytes bytes{};
  std::memcpy(bytes.data(), &encoded, sizeof encoded);
  return bytes;
}

std::optional<simt::TensorMap> decode_tensor_map(std::span<const std::byte> bytes) {
  Encoded encoded{};
  if (bytes.size() < sizeof encoded) return std::nullopt;
  std::memcpy(&encoded, bytes.data(), sizeof encoded);
  if (encoded.tag != kTag) return std::nullopt;
  return simt::TensorMap{encoded.data, 0, encoded.shape};
}

}  // namespace attest::ptx
