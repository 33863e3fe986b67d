#pragma once

#include <cstdint>
#include <vector>

namespace attest::reference {

/// Terms of one sum whose roundings go the same way because they are nearly equal: groups of
/// entries whose x > 0 lie within a factor of each other (docs/theory/error-bounds.md, "Two
/// strengths"). One sort serves groupings of several factors.
/// [reference/coherent_groups_test]
class CoherentGroups {
 public:
  /// Sorts x[0] .. x[count-1]; entries that are not positive are in no group.
  /// Ensures:  order to a relative 2^-52 times the next power of two above count, by which groups
  ///           reach further, so that none is split.
  /// Cost:     O(count log count).
  void sort(const double* x, std::int64_t count);

  /// For every entry e, total[e] = sum of weight over its group: a group begins at the smallest x
  /// that no other group holds and reaches e^width times as far. Entries in no group get 0.
  /// Shapes: weight (count), total (count).
  void group_sums(double width, const double* weight, std::vector<double>& total) const;

  /// Coherent additions (section "Drift"): sum over groups of share * min(size, depth), where share
  /// is the group's part of the weight; about 1 when no x is within e^width of another.
  double coherence(double width, const double* weight, double depth) const;

 private:
  template <typename Visit>
  void for_each_group(double width, const Visit& visit) const;

  std::size_t index(std::uint64_t key) const { return key & index_mask_; }
  double value(std::uint64_t key) const;

  // The bits of a positive double order like its value; the lowest make room for its position.
  std::vector<std::uint64_t> sorted_;
  std::uint64_t index_mask_ = 0;
  std::size_t count_ = 0;
};

}  // namespace attest::reference
