#pragma once

#include <optional>
#include <string_view>

#include "gpu/ptx/program/program.hpp"

namespace attest::ptx {

/// The special register of that name ("%tid.x"), all of which have 32 bits; none for others.
std::optional<Special> special_named(std::string_view name);

/// Place of a lane in its block and launch.
struct LanePlace {
  simt::Index3 grid, block_size, block, thread;
  std::uint32_t lane = 0, warp = 0, warps = 0;
  std::uint32_t dynamic_shared_bytes = 0, shared_bytes = 0;
};

std::uint32_t special_value(Special special, const LanePlace& place);

}  // namespace attest::ptx
