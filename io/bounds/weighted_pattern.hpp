#pragma once

#include <cstdint>

#include "io/bounds/bound.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/bounds/pair_density.hpp"
#include "io/bounds/pattern_degrees.hpp"

/// A lower bound for attention forward that knows how dense parts of a mask can be:
/// docs/theory/bounds/patterns.md, "Dense parts". M is fast_words.
namespace attest::io {

/// Visible pairs with weights from 0 to 1.
struct WeightedPairs {
  double weight = 0;        // of all pairs of a copy
  PairDensity density;      // of weight
  std::int64_t copies = 1;  // heads and batch entries
};

/// [io/bounds/weighted_pattern_test "density"]
WeightedPairs weighted_pairs(const ClassGrid& grid, const PartWeights& weights);

/// max over X and Y of Y + X (h - 1), h = ceil((W d_v - F(Y))/F(M+X)) >= 1, or for each copy by
/// itself where that is more.
std::int64_t weighted_words(const WeightedPairs& pairs, const Extent& extent,
                            const KernelClass& kernel, std::int64_t fast_words);

/// Theorem A with weighted pairs: max over X and Y of Y + X (h - 1), h = ceil((W d_v -
/// F(Y))/F(M+X)) >= 1, W the weight of all pairs, F(B) = B rho(B); recomputation allowed. Proved:
/// docs/theory/bounds/patterns.md. Needs K1 to K6, a class with at least 16 rows or keys, no parts
/// of 16 classes that are nearly all visible, and fast memory for queries, keys, values and outputs
/// of 4 of the largest class. [io/bounds/weighted_pattern_test, proptest/pattern_bounds_test]
///
/// Cost: that of part_weights, once for each `degrees`.
Bound theorem_a_weighted(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words);

}  // namespace attest::io
