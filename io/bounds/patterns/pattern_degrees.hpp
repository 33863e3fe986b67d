#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "io/bounds/extent.hpp"
#include "io/bounds/patterns/neighbourhoods.hpp"
#include "io/bounds/weights/part_weights.hpp"
#include "io/machine/words.hpp"

namespace attest::io {

/// A connected part of the visible pairs of rows with at least two visible keys: no visible pair
/// joins its rows or keys to others.
struct PatternComponent {
  std::vector<std::int64_t> row_degrees;         // visible keys of each row, descending
  std::vector<std::int64_t> key_degrees;         // such rows that see each key, descending
  std::int64_t copies = 1;                       // components with these degrees
  std::optional<Neighbourhoods> neighbourhoods;  // of all copies, if known
  // Consecutive values of key - row that hold all pairs; 0: not known.
  std::int64_t diagonals = 0;

  /// Visible pairs of one copy.
  std::int64_t pairs() const;
};

/// Facts that the bounds by pattern know of a problem. Rows with at most one visible key, and keys
/// that only such rows see, have no part in it (condition K4). The query heads that share a K/V
/// head are rows of one pattern; heads and batch entries are components of their own.
struct PatternDegrees {
  Extent extent;
  std::vector<PatternComponent> components;       // the most pairs first
  std::shared_ptr<const DenseParts> dense_parts;  // of boolean masks
};

/// Degrees of all heads and batch entries of the problem, by component.
///
/// Requires: a valid problem. Else throws InvalidProblem; also when a count exceeds 2^63 - 1.
/// Ensures:  what a search through the graph of visible pairs gives
///           [io/bounds/patterns/pattern_degrees_test "a search through the graph"]
/// Cost:     linear in the sequence lengths, in rows x keys with a boolean mask, and that of
///           Neighbourhoods, which are known for boolean masks with as many query heads as K/V
///           heads and at most 2^24 pairs; batch entries of equal lengths are looked at once.
PatternDegrees pattern_degrees(const Problem& problem);

/// One part for each component, made by make(component), but at most 16: the smallest share the
/// last, which include(last, part) widens so that it holds for both. Parts have `pairs` of one copy
/// and `copies`.  [io/bounds/patterns/pattern_test "many components"]
template <class Part, class Make, class Include>
std::vector<Part> parts_of_pattern(const PatternDegrees& degrees, const Make& make,
                                   const Include& include) {
  constexpr std::size_t kMostParts = 16;
  std::vector<Part> parts;
  for (const PatternComponent& component : degrees.components) {
    Part part = make(component);
    if (parts.size() < kMostParts) {
      parts.push_back(std::move(part));
      continue;
    }
    Part& shared = parts.back();
    include(shared, part);
    shared.pairs = (Words(shared.pairs) * shared.copies + Words(part.pairs) * part.copies).value();
    shared.copies = 1;
  }
  return parts;
}

}  // namespace attest::io
