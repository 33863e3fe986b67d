#pragma once

#include <cstdint>

#include "io/bounds/bound.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"

/// Lower bounds for patterns that fall into components of different sizes: what a small one must
/// move is best counted word by word, large ones by a theorem. docs/theory/bounds/patterns.md,
/// "Small components". M is fast_words.
namespace attest::io {

/// The compulsory words of some components, and the greatest bound by size for the pairs of the
/// others; the best of some choices. Never below the bounds by size. Proved. Needs K1 to K6, and
/// what the bounds by size need.  [io/bounds/patterns/components_test, io/pebble/bounds_test]
///
/// Cost: at most 64 times that of the bounds by size.
Bound forward_components(const PatternDegrees& degrees, const KernelClass& kernel,
                         std::int64_t fast_words);
Bound backward_components(const PatternDegrees& degrees, const KernelClass& kernel,
                          std::int64_t fast_words);

}  // namespace attest::io
