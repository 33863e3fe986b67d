#pragma once

#include <string>
#include <vector>

#include "io/recording/word_move.hpp"

namespace attest::cpu::testing {

/// Why the rows of an index do not move together in a recorded backward pass, the class of
/// docs/theory/bounds/row-atomic.md; nothing if they do: words of pairs in slow memory, or a
/// gradient that was added to before an input of its index came.
std::string why_not_whole(const std::vector<io::WordMove>& moves);

}  // namespace attest::cpu::testing
