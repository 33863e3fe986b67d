#pragma once

#include <vector>

#include "io/bounds/weights/part_weights.hpp"

namespace attest::io {

/// How heavy parts can be that take shares of classes, where whole classes have the limits of
/// `weights`: docs/theory/bounds/patterns.md, "Dense parts". Shares are of the largest class, and
/// cost as much of what a class costs; weights are those of pairs of two classes, 1 at most.
class ShareLimits {
 public:
  /// Requires: limits for rows and columns that cost 1 each, or for parts that cost up to so much
  ///           more than full ones as a row and a column. Else throws InternalError.
  explicit ShareLimits(const PartWeights& weights);

  /// The most weight of parts of at most that cost; grows with it.
  /// [io/bounds/weights/share_limits_test "shares"]
  double most(double cost) const;

  /// The most weight in proportion to the cost, where at most `weight` counts; grows with it.
  /// [io/bounds/weights/share_limits_test "density"]
  double density(double weight) const;

 private:
  double last() const;  // the greatest cost of the table

  double per_square_;          // what is visible at most
  std::vector<double> most_;   // by cost, so many entries to one
  std::vector<double> dense_;  // the greatest proportion up to each
};

}  // namespace attest::io
