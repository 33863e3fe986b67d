#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "io/bounds/patterns/pattern_degrees.hpp"

/// How many visible pairs few rows and keys can have among them, by their degrees and
/// neighbourhoods: docs/theory/bounds/patterns.md.
namespace attest::io {

/// The most visible pairs of any I rows and J keys, as far as degrees tell. With more than one word
/// to an index: of words of rows and words of keys, a pair for every word of its row and its key.
class DegreeLimit {
 public:
  /// Requires: degrees in descending order, as pattern_degrees gives them. Else throws
  /// InternalError. Pairs of words fewer than 2^62. Else throws CountOverflow.
  explicit DegreeLimit(const PatternComponent& component, IndexWords words = {});

  /// min(sum of the I largest min(r_i, J), sum of the J largest min(c_j, I)); never less than the
  /// visible pairs between any I rows and J keys.
  /// [io/bounds/weights/pair_density_test "any rows and keys", io/bounds/weights/pair_density_test
  /// "words"]
  std::int64_t pairs_within(std::int64_t rows, std::int64_t keys) const;

  /// The greatest pairs_within(I, J) with I + J = indices.
  /// [io/bounds/weights/pair_density_test "all divisions"]
  ///
  /// Requires: 0 <= indices <= most_indices().
  /// Cost:     logarithmic, because the value is concave in I along I + J = indices.
  std::int64_t most_pairs(std::int64_t indices) const;

  /// Rows and keys, or their words, in all.
  std::int64_t most_indices() const { return rows_.size() + keys_.size(); }

 private:
  // Numbers in descending order, as the rows of a Young diagram; each stands for `height` rows, and
  // each of its cells for `width`.
  class Diagram {
   public:
    Diagram(const std::vector<std::int64_t>& descending, std::int64_t height, std::int64_t width);
    std::int64_t size() const { return height_ * (static_cast<std::int64_t>(sums_.size()) - 1); }
    // Cells in the first `rows` rows and the first `columns` columns.
    std::int64_t cells(std::int64_t rows, std::int64_t columns) const;

   private:
    std::int64_t height_, width_;
    std::vector<std::int64_t> sums_;      // of the first numbers
    std::vector<std::int64_t> at_least_;  // numbers that are at least so large
  };

  Diagram rows_, keys_;
};

/// The most pairs of sets of `indices` rows and keys whose pairs lie on so many diagonals: of I
/// rows and J keys with 2 sqrt(I J) at most `indices`, and so of those with I + J = indices.
/// [io/bounds/weights/pair_density_test "diagonals"]
///
/// Requires: both at least 0; 0 diagonals: not known.
std::int64_t most_on_diagonals(std::int64_t indices, std::int64_t diagonals);

/// s(y) on a grid of y: the most visible pairs per row or key of any set of rows and keys, when at
/// most y pairs count. The grid is the same for all patterns: every whole number up to 512, 1/512
/// apart beyond.
class PairDensity {
 public:
  /// For `fewest` to the next entry's `fewest` - 1 pairs, at most `density` pairs per index; the
  /// last entry holds for every greater number of pairs.
  struct Entry {
    std::int64_t fewest = 1;
    double density = 0;
  };

  /// Requires: degrees in descending order and at least one pair.
  /// Ensures:  densities are not below their exact values, and increase
  ///           [io/bounds/weights/pair_density_test "density"]
  /// Cost:     n log n for n rows and keys.
  explicit PairDensity(const PatternComponent& component);

  /// The same for 2 sqrt(I J) in place of I + J, by neighbourhoods and diagonals alone: at most y
  /// pairs among I rows and J keys are at most at(y) 2 sqrt(I J). Where neither is known that is
  /// about sqrt(y)/2.  [io/bounds/patterns/neighbourhoods_test "geometric mean"]
  static PairDensity of_geometric_mean(const PatternComponent& component);

  /// Tabulates a density that is known as a function of y, increasing, up to so many pairs; y may
  /// be any number from 0 on, for pairs may have weights.
  /// [io/bounds/weights/weighted_pattern_test "density"]
  static PairDensity of(const std::function<double(double pairs)>& density, std::int64_t pairs);

  const std::vector<Entry>& entries() const { return entries_; }

  /// s(y) or a little more. Requires: pairs at least 1. Else throws InternalError.
  double at(double pairs) const;

  /// Takes at every number of pairs the greater density of the two.
  void include(const PairDensity& other);

 private:
  // The most pairs of sets of so many rows and keys (or of such a mean); does not decrease.
  using MostPairs = std::function<std::int64_t(std::int64_t indices)>;
  PairDensity(const MostPairs& most_pairs, std::int64_t most_indices, std::int64_t pairs);
  explicit PairDensity(std::vector<Entry> entries) : entries_(std::move(entries)) {}

  std::vector<Entry> entries_;
};

}  // namespace attest::io
