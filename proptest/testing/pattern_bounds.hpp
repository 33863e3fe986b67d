#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "io/bounds/bound.hpp"
#include "io/bounds/extent.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/bounds/patterns/pattern_degrees.hpp"
#include "io/schedule/schedule.hpp"

/// The bounds of a problem with a mask, by size and by pattern.
namespace attest::proptest::testing {

using BoundsAt =
    std::function<std::vector<io::Bound>(const io::KernelClass&, std::int64_t fast_words)>;

/// The bounds by pattern, with what depends on the pattern alone found once. Requires: `degrees`
/// lives as long.
BoundsAt bounds_at(Direction direction, const io::PatternDegrees& degrees);

std::vector<io::Bound> bounds_by_size(Direction direction, const io::Extent& extent,
                                      const io::KernelClass& kernel, std::int64_t fast_words);

/// Both, and those that take them.
std::vector<io::Bound> all_bounds(Direction direction, const io::Extent& extent,
                                  const BoundsAt& by_pattern, const io::KernelClass& kernel,
                                  std::int64_t fast_words);

}  // namespace attest::proptest::testing
