#pragma once

#include <cstdint>

namespace attest {

/// ceil(extent / size), for size >= 1 and extent >= 0.
constexpr std::int64_t blocks_of(std::int64_t extent, std::int64_t size) {
  return extent / size + (extent % size == 0 ? 0 : 1);
}

}  // namespace attest
