#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io/recording/word_move.hpp"

namespace attest::schedules::testing {

/// Why the rows of an index do not move together in a recorded backward pass, the class of
/// docs/theory/bounds/row-atomic.md; nothing if they do: words of pairs in slow memory, or a
/// gradient that was added to before an input of its index came.
std::string why_not_whole(const std::vector<io::WordMove>& moves);

/// Words that docs/theory/bounds/row-atomic.md compares under "One visit", of a recorded backward
/// pass with d_k = d_v.
struct VisitWords {
  std::int64_t arrivals = 0;  // N d: words of the rows of an index, whenever they come for visits
  std::int64_t once = 0;      // S: as many if all came once
  std::int64_t moved = 0;     // words of operands and gradients read and written
};
VisitWords visit_words(const std::vector<io::WordMove>& moves);

}  // namespace attest::schedules::testing
