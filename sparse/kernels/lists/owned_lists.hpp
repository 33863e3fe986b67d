#pragma once

#include <cstdint>
#include <vector>

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// Lists of indices with memory of their own; a list is begun by the indices after those before it.
struct OwnedLists {
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> indices;

  /// Ends the list that the last indices are of.
  void end_list() { offsets.push_back(static_cast<std::int64_t>(indices.size())); }

  /// The lists of another after those of this one.
  void append(const OwnedLists& next);

  /// Valid until the next index. Its indices are never null.
  attest_lists view() {
    indices.reserve(1);
    return {offsets.data(), indices.data()};
  }
};

/// The other direction: list j has every i whose list has j, ascending. Requires: indices < lines.
/// [sparse/kernels/lists/split_mask_test "lists in the other direction"]
OwnedLists transposed(const OwnedLists& lists, std::int64_t lines);

}  // namespace attest::sparse
