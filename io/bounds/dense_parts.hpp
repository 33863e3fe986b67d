#pragma once

#include <array>
#include <cstdint>
#include <optional>

/// How heavy parts of a weighted grid can be, by exhaustive search: docs/theory/bounds/patterns.md,
/// "Dense parts".
namespace attest::io {

inline constexpr std::size_t kMostClasses = 64;
inline constexpr int kMostIndices = 20;

/// Weights of rows by columns, from 0 to 255 each; what a grid does not have weighs 0.
using WeightRow = std::array<std::int16_t, kMostClasses>;
using WeightGrid = std::array<WeightRow, kMostClasses>;

/// A claim about parts: I rows and J columns with I + J <= indices, at least one of each, have at
/// most most (I + J)/indices weight among them.
struct PartLimit {
  int indices = 2;
  std::int64_t most = 0;
};

/// What a search found out, and what it cost.
struct PartSearch {
  bool proved = false;     // false: a part is heavier, or the steps did not suffice
  std::int64_t steps = 0;  // sets of rows or columns that were looked at
  // Where a part is heavier: the least limit that holds for it.
  std::optional<std::int64_t> least;
};

/// Looks for parts beyond the limit through all sets of rows, or of columns, that could belong to
/// one: what does not end with none left is not proved.
/// [io/bounds/dense_parts_test "all parts"]
///
/// Requires: indices from 2 to 20, most from 0 to 2^32, weights as above. Else throws
/// InternalError. Cost:     some 30 ns a step; memory for at most 2^24 sets, 8 bytes each.
PartSearch prove_limit(const WeightGrid& grid, PartLimit limit, std::int64_t most_steps);

}  // namespace attest::io
