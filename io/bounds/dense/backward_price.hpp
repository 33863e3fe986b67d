#pragma once

#include <cstdint>
#include <vector>

#include "io/bounds/weights/pair_density.hpp"

namespace attest::io {

/// The most work per word of the backward pass, a multiply-add counted as 4/d so that a pair has
/// 12, on one component of a pattern: docs/theory/bounds/patterns.md, "Backward". Tabulated at
/// every whole number of words up to 256 and 1/256 apart beyond.
class BackwardPrice {
 public:
  /// Requires: degrees in descending order, at least one pair, head_dim at least 1; 24 pairs d^2
  /// below 2^63. Else throws InternalError, CountOverflow.
  /// Cost:     up to 10^6 steps.
  BackwardPrice(const PatternComponent& component, std::int64_t head_dim);

  /// Returns the price of segments with up to `usable_words` words; does not decrease.
  /// [io/bounds/patterns/backward_pattern_test "segments"]
  double work_per_word(double usable_words) const;

  /// Takes the greater price of the two everywhere.
  void include(const BackwardPrice& other);

 private:
  std::vector<double> prices_;  // the last holds beyond
};

}  // namespace attest::io
