#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "io/bounds/extent.hpp"
#include "io/bounds/neighbourhoods.hpp"

namespace attest::io {

/// A connected part of the visible pairs of rows with at least two visible keys: no visible pair
/// joins its rows or keys to others.
struct PatternComponent {
  std::vector<std::int64_t> row_degrees;         // visible keys of each row, descending
  std::vector<std::int64_t> key_degrees;         // such rows that see each key, descending
  std::int64_t copies = 1;                       // components with these degrees
  std::optional<Neighbourhoods> neighbourhoods;  // of all copies, if known

  /// Visible pairs of one copy.
  std::int64_t pairs() const;
};

/// What the bounds by pattern know of a problem. Rows with at most one visible key, and keys that
/// only such rows see, have no part in it (condition K4). The query heads that share a K/V head are
/// rows of one pattern; heads and batch entries are components of their own.
struct PatternDegrees {
  Extent extent;
  std::vector<PatternComponent> components;  // the most pairs first
};

/// Degrees of all heads and batch entries of the problem, by component.
///
/// Requires: a valid problem. Else throws InvalidProblem; also when a count exceeds 2^63 - 1.
/// Ensures:  what a search through the graph of visible pairs gives
///           [io/bounds/pattern_degrees_test "a search through the graph"]
/// Cost:     linear in the sequence lengths, in rows x keys with a boolean mask, and that of
///           Neighbourhoods, which are known for boolean masks with as many query heads as K/V
///           heads and at most 2^24 pairs; batch entries of equal lengths are looked at once.
PatternDegrees pattern_degrees(const Problem& problem);

}  // namespace attest::io
