#include "sparse/kernels/lists/owned_lists.hpp"

#include <numeric>

namespace attest::sparse {

void OwnedLists::append(const OwnedLists& next) {
  const auto before = static_cast<std::int64_t>(indices.size());
  for (std::size_t i = 1; i < next.offsets.size(); ++i) offsets.push_back(before + next.offsets[i]);
  indices.insert(indices.end(), next.indices.begin(), next.indices.end());
}

OwnedLists transposed(const OwnedLists& lists, std::int64_t lines) {
  OwnedLists other;
  other.offsets.assign(static_cast<std::size_t>(lines) + 1, 0);
  for (const std::int32_t j : lists.indices) ++other.offsets[static_cast<std::size_t>(j) + 1];
  std::partial_sum(other.offsets.begin(), other.offsets.end(), other.offsets.begin());
  other.indices.resize(lists.indices.size());
  std::vector<std::int64_t> next = other.offsets;
  for (std::size_t i = 0; i + 1 < lists.offsets.size(); ++i) {
    for (std::int64_t n = lists.offsets[i]; n < lists.offsets[i + 1]; ++n) {
      const std::int32_t j = lists.indices[static_cast<std::size_t>(n)];
      std::int64_t& at = next[static_cast<std::size_t>(j)];
      other.indices[static_cast<std::size_t>(at++)] = static_cast<std::int32_t>(i);
    }
  }
  return other;
}

}  // namespace attest::sparse
