#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"

/// Which keys a query sees one by one, and which queries a key, from a problem's CSR mask. Without
/// one, all that band and key lengths leave.
namespace attest::sparse {

/// Rows of a sequence, ascending: some of a list, or `count` from `first` on.
struct RowList {
  const std::int32_t* indices;  // or null
  std::int64_t first, count;

  std::int64_t operator[](std::int64_t n) const {
    return indices != nullptr ? indices[n] : first + n;
  }
};

inline bool has_band(const attest_mask& mask) {
  return mask.window_left >= 0 || mask.window_right >= 0;
}

/// Keys of query i that are visible.  [sparse/kernels/tiles_test "every visible pair once"]
RowList keys_of(const attest_problem& problem, const cpu::Batch& batch, std::int64_t i);

/// Queries that see key j. Requires: j < batch.keys.
/// [sparse/kernels/tiles_test "every visible pair once"]
RowList queries_of(const attest_problem& problem, const cpu::Batch& batch, std::int64_t j);

}  // namespace attest::sparse
