#pragma once

#include <cstdint>

#include "io/bounds/bound.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"
#include "io/bounds/weights/part_weights.hpp"
#include "io/bounds/weights/share_limits.hpp"

/// A lower bound for attention backward that knows how dense parts of a mask can be:
/// docs/theory/bounds/patterns.md, "Dense parts backward". M is fast_words.
namespace attest::io {

/// Work that segments can do for weighted pairs: a multiply-add into dQ, dK or dV counts 4/d and
/// the weight of its pair.
class WeightedProducts {
 public:
  /// Requires: weights for kBackwardParts, else throws InternalError; head_dim the smaller of d_k
  ///           and d_v.
  WeightedProducts(const ClassGrid& grid, const PartWeights& weights, std::int64_t head_dim);

  /// 12 for a pair of weight 1, of a copy.
  double all_work() const { return all_work_; }

  /// The weight of x_i y_j over all pairs, d x_i and d y_j the usable words of a row and of a key,
  /// at most.  [io/bounds/weights/weighted_backward_test "products"]
  double most_products(double words) const;

  /// The most work with so many usable words, whatever part of them is carried by single pairs.
  double most_work(double usable_words) const;

 private:
  ShareLimits limits_;
  double class_size_, head_dim_, all_work_;
};

/// max over X and Y of Y + X (h - 1), h = ceil((12 W - F(Y))/F(M+X)) >= 1, each copy by itself.
std::int64_t weighted_backward_words(const WeightedProducts& products, std::int64_t copies,
                                     const KernelClass& kernel, std::int64_t fast_words);

/// Theorem C with weighted pairs; recomputation and carried values allowed. Proved:
/// docs/theory/bounds/patterns.md. Needs K1 to K6, and what theorem_a_weighted needs of a mask and
/// of fast memory. [io/bounds/weights/weighted_backward_test, proptest/suites/pattern_bounds_test]
///
/// Cost: that of part_weights, once for each `degrees`.
Bound theorem_c_weighted(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words);

}  // namespace attest::io
