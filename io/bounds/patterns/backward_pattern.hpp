#pragma once

#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/dense/backward_price.hpp"

/// Lower bound for attention backward that knows which pairs are visible:
/// docs/theory/bounds/patterns.md, "Backward". Requirements and guarantees as in
/// io/bounds/dense/forward.hpp  [io/bounds/patterns/backward_pattern_test "monotone",
/// io/pebble/bounds_test, proptest/suites/pattern_bounds_test].
namespace attest::io {

/// A part of a pattern that has no rows or keys in common with others.
struct BackwardPart {
  BackwardPrice price;
  std::int64_t pairs = 0;
  std::int64_t copies = 1;
};

/// A pattern as this bound sees it, in at most 16 parts: the smallest share one.
using BackwardParts = std::vector<BackwardPart>;

BackwardParts backward_parts(const PatternDegrees& degrees);

/// Theorem C by pattern: max over X and Y of Y + X (h - 1), h = ceil((U(M+X) - Y)/(M+X)) >= 1,
/// where U(B) sums over components the words that the multiply-adds into dQ, dK and dV cost at the
/// price of segments with B usable words; or the sum of that over components, each with its own X
/// and Y. Never below theorem C but for lower-order terms; recomputation and carried values
/// allowed. Proved: docs/theory/bounds/patterns.md. Needs K1 to K6.
/// [io/bounds/patterns/backward_pattern_test "theorem C"]
Bound theorem_c_pattern(const BackwardParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words);

/// The bound above, backward_small_pattern, backward_components, and of boolean masks
/// theorem_c_weighted.
std::vector<Bound> backward_pattern_bounds(const PatternDegrees& degrees, const KernelClass& kernel,
                                           std::int64_t fast_words);

}  // namespace attest::io
