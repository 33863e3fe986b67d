#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <optional>

/// How heavy parts of a weighted grid can be, by exhaustive search: docs/theory/bounds/patterns.md,
/// "Dense parts".
namespace attest::io {

inline constexpr std::size_t kMostClasses = 64;
inline constexpr int kMostColumns = 19;  // of a part

/// Weights of rows by columns, from 0 to 255 each; what a grid does not have weighs 0.
using WeightRow = std::array<std::int16_t, kMostClasses>;
using WeightGrid = std::array<WeightRow, kMostClasses>;

/// Costs of parts, by the row and by the column, and those that are limited.
struct PartCosts {
  int row = 1, column = 1;
  int full = 2;    // of the parts that a limit is told for
  int beyond = 0;  // those that cost up to so much more are limited too, less strictly

  auto operator<=>(const PartCosts&) const = default;

  int of(int rows, int columns) const { return row * rows + column * columns; }
  int reach() const { return full + beyond; }
  /// Twice the cost, and what is beyond a full part once more: the limits of parts are as this is,
  /// 2 full for full ones. The cost beyond is allowed half as much again.
  int allowance(int rows, int columns) const {
    return 2 * of(rows, columns) + std::max(of(rows, columns) - full, 0);
  }
};

/// A claim about parts: I rows and J columns, at least one of each, that cost no more than
/// costs.reach() have at most most allowance(I, J)/(2 full) weight among them.
struct PartLimit {
  PartCosts costs;
  std::int64_t most = 0;
};

/// Findings of a search, and its cost.
struct PartSearch {
  bool proved = false;     // false: a part is heavier, or the steps did not suffice
  std::int64_t steps = 0;  // sets of rows or columns that were looked at
  // Where a part is heavier: the least limit that holds for it.
  std::optional<std::int64_t> least;
};

/// Tells whether parts of such costs can be searched: costs from 1 to 2^10, a reach of at least two
/// rows and of two columns; at most 19 rows beside one column, 16 beside four columns and 16 for
/// half of the reach, and as many columns beside rows.  [io/bounds/weights/dense_parts_test "out of
/// range"]
bool can_search(const PartCosts& costs);

/// Looks for parts beyond the limit through all sets of rows, or of columns, that could belong to
/// one: what does not end with none left is not proved.
/// [io/bounds/weights/dense_parts_test "all parts"]
///
/// Requires: costs that can be searched; most from 0 to 2^32, weights as above. Else throws
///           InternalError.
/// Cost:     some 30 ns a step; memory for at most 2^24 sets, 8 bytes each.
PartSearch prove_limit(const WeightGrid& grid, PartLimit limit, std::int64_t most_steps);

}  // namespace attest::io
