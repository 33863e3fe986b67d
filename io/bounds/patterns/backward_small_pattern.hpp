#pragma once

#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/weights/pair_density.hpp"

/// backward_small for patterns: docs/theory/bounds/patterns.md, "Backward, small fast memory".
namespace attest::io {

/// The most multiply-adds per usable word, those into scores, dQ and dK weighted by sqrt(3)/2, when
/// every product takes a word of its pair: with e_1 pairs' scores and e_2 pairs' gradients among B
/// words at most (1 - (e_1 + e_2)/B) sqrt(s(e_1)^2 + s(e_2)^2), s the density per geometric mean.
class FiveProductPrice {
 public:
  /// Requires: at least one pair.
  /// Cost:     that of PairDensity, and 64 of its values for each entry.
  explicit FiveProductPrice(const PatternComponent& component);

  /// Returns the price of segments with up to `usable_words` words; does not decrease.
  /// [io/bounds/patterns/backward_small_pattern_test "segments"]
  double work_per_word(double usable_words) const;

  /// Takes the greater price of the two everywhere.
  void include(const FiveProductPrice& other);

 private:
  // Words of pairs from `fewest` to the next entry's, and what is greatest then; the last holds
  // beyond. The grid is the same for all patterns.
  struct Entry {
    double fewest = 0, density = 0;
  };
  std::vector<Entry> entries_;
};

/// A part of a pattern that has no rows or keys in common with others.
struct FiveProductPart {
  FiveProductPrice price;
  std::int64_t pairs = 0;
  std::int64_t copies = 1;
};

/// A pattern as this bound sees it, in at most 16 parts: the smallest share one.
struct FiveProductParts {
  Extent extent;
  std::vector<FiveProductPart> parts;
};

FiveProductParts five_product_parts(const PatternDegrees& degrees);

/// max over X of X (U(M+X) - X)/(M+X) - 2Z, where U(B) sums over components the words that the five
/// products cost at the price of segments with B usable words, over X where no component gains by
/// repeated evaluations; over all X and Y, and with the ceiling, if the kernel evaluates every
/// score and dP once. Where neighbourhoods are not known it is backward_small but for lower-order
/// terms. Proved: docs/theory/bounds/patterns.md. Needs K1 to K6, each evaluation of a score and of
/// dP one chain.  [io/bounds/patterns/backward_small_pattern_test "monotone"]
Bound backward_small_pattern(const FiveProductParts& pattern, const KernelClass& kernel,
                             std::int64_t fast_words);

}  // namespace attest::io
