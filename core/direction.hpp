#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/abi/attest_kernel.h"

namespace attest {

/// A call that the ABI knows.
enum class Direction : std::uint8_t { forward, backward, loss_gradient };

/// Returns "forward", "backward" or "loss_gradient".
constexpr std::string_view name(Direction direction) {
  constexpr std::string_view kNames[] = {"forward", "backward", "loss_gradient"};
  return kNames[static_cast<std::size_t>(direction)];
}

/// Returns the name as it stands in a sentence.
constexpr std::string_view words(Direction direction) {
  return direction == Direction::loss_gradient ? "loss gradient" : name(direction);
}

/// Returns the bit of attest_description.directions.
constexpr std::uint32_t abi(Direction direction) {
  constexpr std::uint32_t kBits[] = {ATTEST_FORWARD, ATTEST_BACKWARD, ATTEST_LOSS_GRADIENT};
  return kBits[static_cast<std::size_t>(direction)];
}

}  // namespace attest
