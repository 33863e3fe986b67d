#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/problem.hpp"

namespace attest::io {

/// A mask with alike rows and keys put together: rows that see the same keys are one class, keys
/// that the same rows see another; those larger than most are divided again, so that equal block
/// rows are two. Block masks have as many as blocks, or fewer. Where a band cuts too many apart, as
/// a causal mask cuts blocks, classes are those of the boolean mask alone, and of two classes not
/// all pairs may be visible.
struct ClassGrid {
  std::vector<std::int64_t> rows, keys;          // how many each class has, of one copy
  std::vector<std::vector<std::int64_t>> pairs;  // visible: [row class][key class]
  std::int64_t copies = 1;                       // K/V heads and batch entries
};

/// The classes of the rows that see at least two keys, and of the keys that these see. Query heads
/// that share a K/V head are rows of one grid.
///
/// Ensures: nothing, unless there are from 1 to 64 classes each, a boolean mask, and batch entries
///          of equal lengths  [io/bounds/patterns/class_grid_test]
/// Cost:    that of looking at all pairs; not more than 2^26 are looked at.
std::optional<ClassGrid> class_grid(const Problem& problem);

}  // namespace attest::io
