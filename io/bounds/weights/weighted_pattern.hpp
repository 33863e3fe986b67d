#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"
#include "io/bounds/weights/pair_density.hpp"

/// A lower bound for attention forward that knows how dense parts of a mask can be:
/// docs/theory/bounds/patterns.md, "Dense parts". M is fast_words.
namespace attest::io {

/// Rows or keys of the largest class.
std::int64_t largest_class(const ClassGrid& grid);

/// Why weights for parts of none of these costs can be of use, empty where some can: fast memory
/// for the head dimensions of 2 of the largest class, of at least 16 rows or keys, and what
/// part_weights needs. With smaller blocks, of which long segments hold many more than a full part,
/// they would be searched in vain.
///
/// Cost: that of part_weights, once for each `parts` and costs.
std::string fault_of_weights(const DenseParts& parts, const std::vector<PartCosts>& costs,
                             std::int64_t head_dims, std::int64_t fast_words);

/// Returns the weight of all pairs of a copy, in weights from 0 to 1.
double weight_of_pairs(const ClassGrid& grid, const PartWeights& weights);

/// Visible pairs with weights from 0 to 1.
struct WeightedPairs {
  double weight = 0;        // of all pairs of a copy
  PairDensity density;      // of weight
  std::int64_t copies = 1;  // heads and batch entries
};

/// [io/bounds/weights/weighted_pattern_test "density"]
WeightedPairs weighted_pairs(const ClassGrid& grid, const PartWeights& weights);

/// max over alpha, X and Y of Y + X (h - 1), h = ceil((W (d_v + alpha d_k) - F(Y))/F(M+X)) >= 1, or
/// for each copy by itself where that is more.
std::int64_t weighted_words(const WeightedPairs& pairs, const Extent& extent,
                            const KernelClass& kernel, std::int64_t fast_words);

/// Theorem A with weighted pairs: max over alpha, X and Y of Y + X (h - 1), h = ceil((W (d_v +
/// alpha d_k) - F(Y))/F(M+X)) >= 1, W the weight of all pairs, F the most work of a segment, that
/// of scores counted alpha; recomputation allowed. Proved: docs/theory/bounds/patterns.md. Needs K1
/// to K6, a class with at least 16 rows or keys, fast memory for the head dimensions of 2 of the
/// largest class, and what part_weights needs. [io/bounds/weights/weighted_pattern_test,
/// proptest/suites/pattern_bounds_test]
///
/// Cost: that of part_weights for two sizes of parts, once for each `degrees`.
Bound theorem_a_weighted(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words);

}  // namespace attest::io
