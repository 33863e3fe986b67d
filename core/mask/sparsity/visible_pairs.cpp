#include "core/mask/sparsity/visible_pairs.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace attest {
namespace {

// The keys of a row of a boolean mask without a compressed form.
void runs_of(const BooleanMask& mask, std::int64_t query, std::vector<KeyRange>& runs) {
  runs.clear();
  const auto row = mask.visible.begin() + query * mask.columns, end = row + mask.columns;
  for (auto at = std::find(row, end, 1); at != end; at = std::find(at, end, 1)) {
    const auto first = at;
    at = std::find(at, end, 0);
    runs.push_back({first - row, at - row});
  }
}

bool is_whole(const Pattern& mask, const Sequence& sequence) {
  const BooleanMask& boolean = *mask.boolean;
  return !mask.banded() && sequence.q_length == boolean.rows &&
         sequence.k_length == boolean.columns && sequence.visible_keys == sequence.k_length;
}

}  // namespace

SparsityPattern visible_pairs(const Pattern& mask, const Sequence& sequence) {
  const SparsityPattern* own = mask.sparsity();
  if (own != nullptr && is_whole(mask, sequence)) return *own;
  constexpr std::size_t kMostRanges = std::size_t{1} << 27;
  RangeForm form;
  std::vector<KeyRange> keys;
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    const KeyRange band = mask.band(sequence, i);
    if (own != nullptr) {
      own->row(i, keys);
    } else if (mask.boolean) {
      runs_of(*mask.boolean, i, keys);
    } else {
      keys.assign(1, band);
    }
    for (const KeyRange& range : keys) {
      const KeyRange left{std::max(range.begin, band.begin), std::min(range.end, band.end)};
      if (left.begin < left.end) form.ranges.push_back(left);
    }
    if (form.ranges.size() > kMostRanges) {
      throw InvalidProblem("mask '" + mask.to_string() +
                           "': has more than 2^27 ranges of keys; give a shorter sequence or a "
                           "sparsity pattern");
    }
    form.row_offsets.push_back(static_cast<std::int64_t>(form.ranges.size()));
  }
  return {sequence.q_length, sequence.k_length, std::move(form), mask.to_string()};
}

}  // namespace attest
