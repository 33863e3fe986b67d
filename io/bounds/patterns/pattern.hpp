#pragma once

#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/weights/pair_density.hpp"

/// Lower bounds for attention forward that know which pairs are visible, not only how many:
/// docs/theory/bounds/patterns.md. M is fast_words. Requirements and guarantees as in
/// io/bounds/dense/forward.hpp  [io/bounds/patterns/pattern_test "monotone", io/pebble/bounds_test,
/// proptest/suites/pattern_bounds_test].
namespace attest::io {

/// A part of a pattern that has no rows or keys in common with others.
struct PatternPart {
  PairDensity density;
  std::int64_t pairs = 0;
  std::int64_t copies = 1;
};

/// A pattern as its bounds see it.
struct PatternParts {
  Extent extent;
  std::vector<PatternPart> parts;  // at most 16: the smallest share one part, as dense as any
};

/// [io/bounds/patterns/pattern_test "many components"]
PatternParts pattern_parts(const PatternDegrees& degrees);

/// Theorem A by pattern: max over alpha, X and Y of Y + X (h - 1), h = ceil((U(M+X) - Y)/(M+X)) >=
/// 1, where U(B) sums over components the words that their multiply-adds into O and, counted alpha,
/// those of a score of every pair cost at the price of segments with B words; or the sum of that
/// over components, each with its own X and Y. Never below theorem A but for lower-order terms;
/// recomputation allowed. Proved: docs/theory/bounds/patterns.md. Needs K1 to K6.
/// [io/bounds/patterns/pattern_test "theorem A", io/bounds/patterns/pattern_test "components add"]
Bound theorem_a_pattern(const PatternParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words);

/// Theorem B by pattern: the same less Z, without the ceiling, with multiply-adds into S and O,
/// over X where no component gains by repeated scores; over all X and Y, and with the ceiling, if
/// the kernel evaluates once. Proved: docs/theory/bounds/patterns.md. Needs K1 to K6, each
/// evaluation of a score one chain.  [io/bounds/patterns/pattern_test "theorem B"]
Bound theorem_b_pattern(const PatternParts& pattern, const KernelClass& kernel,
                        std::int64_t fast_words);

/// N d + N^2 d^2 s / M, with Z for N^2 s: what block-sparse FlashAttention moves, not what every
/// kernel must. Cited: Dao et al. 2022, proposition 4. docs/theory/bounds/patterns.md
Bound block_sparse_flash_order(const Extent& extent, std::int64_t fast_words);

/// The bounds above, forward_components, and of boolean masks theorem_a_weighted.
std::vector<Bound> pattern_bounds(const PatternDegrees& degrees, const KernelClass& kernel,
                                  std::int64_t fast_words);

/// Needs of multiply-adds in a segment, beside words of their operands.
struct PairWork {
  double columns = 0;    // multiply-adds of a pair
  double row_words = 0;  // words of a row or key from which a pair's weight is formed inside;
                         // infinite when every pair has a word of its own
};

/// The most multiply-adds per usable word in segments with up to `usable_words`: at most
/// max over y of min(D s/(D + q), s - q y/B), D = columns, q = min(s, row_words), s = s(y).
/// [io/bounds/patterns/pattern_test "segments"]
double most_work_per_word(const PairDensity& density, const PairWork& work, double usable_words);

}  // namespace attest::io
