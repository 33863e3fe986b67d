#pragma once

#include <bit>
#include <cstdint>
#include <vector>

namespace attest::reference {

/// Terms of one sum whose roundings go the same way because they are nearly equal: groups of
/// entries whose x > 0 lie within a factor of each other (docs/theory/error-bounds/forward.md, "Two
/// strengths"). One sort serves groupings of several factors.
/// [reference/bounds/steps/coherent_groups_test]
class CoherentGroups {
 public:
  /// Sorts x[0] .. x[count-1]; entries that are not positive are in no group.
  /// Ensures:  order to a relative 2^-52 times the next power of two above count, by which groups
  ///           reach further, so that none is split.
  /// Cost:     O(count) where the values spread over their range, O(count log count) at worst.
  void sort(const double* x, std::int64_t count);

  /// For every entry e, total[e] = sum of weight over its group: a group begins at the smallest x
  /// that no other group holds and reaches e^width times as far. An entry in no group gets its own
  /// weight.
  /// Shapes: weight (count), total (count).
  void group_sums(double width, const double* weight, std::vector<double>& total) const;

  /// Coherent additions (section "Drift"): sum over groups of share * min(size, depth), where share
  /// is the group's part of the weight; 1 when no x is within e^width of another, 0 without weight.
  /// Requires: depth >= 1; weight is 0 where x is not positive.
  double coherence(double width, const double* weight, double depth) const;

 private:
  void sort_keys(std::uint64_t least, std::uint64_t largest);

  // visit(begin, end) for every group of at least two, as positions in sorted_.
  template <typename Visit>
  void for_each_group(double width, const Visit& visit) const;

  std::size_t index(std::uint64_t key) const { return key & index_mask_; }
  double value(std::uint64_t key) const { return std::bit_cast<double>(key & ~index_mask_); }

  // The bits of a positive double order like its value; the lowest make room for its position.
  std::vector<std::uint64_t> sorted_, unsorted_;
  std::vector<std::uint32_t> starts_;  // of buckets of keys
  std::uint64_t index_mask_ = 0;
  std::size_t count_ = 0;
};

}  // namespace attest::reference
