#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "io/pebble/dag.hpp"

/// The least traffic of tiny computations, by exhaustive search; recomputation allowed.
namespace attest::io {

/// A set of at most 64 words.
using WordSet = std::uint64_t;

/// One way to form a word.
struct Step {
  WordSet operands = 0;
  std::int32_t result = 0;
};

/// Place of a result: beside all of its operands (rule R3), or possibly that of one of them (a
/// fused multiply-add in place).
enum class Placement : std::uint8_t { beside, in_place };

/// A computation in which a word may be formed in several ways.
struct StepSystem {
  std::int32_t words = 0;
  WordSet inputs = 0, outputs = 0;
  std::vector<Step> steps;
  Placement placement = Placement::beside;
  /// Never more than the words still to be moved from a position (in fast memory, in slow memory
  /// beside the inputs); the search is exact for any such function, fast for a large one.
  std::function<std::int32_t(WordSet fast, WordSet slow)> remaining;
};

/// Findings of the search.
struct Minimum {
  enum class Certainty : std::uint8_t {
    exact,
    at_least,    // the limit on positions was reached: the least traffic is this or more
    impossible,  // so little fast memory that the computation cannot be done
  };
  Certainty certainty = Certainty::exact;
  std::int32_t words = 0;      // reads and writes
  std::int64_t positions = 0;  // visited
};

/// The least reads + writes that form and store all outputs, from empty fast memory.
///
/// Requires: at most 64 words, fast_words at least 1. Else throws InvalidProblem.
/// [io/pebble/minimum_test]
Minimum least_traffic(const StepSystem& system, std::int32_t fast_words,
                      std::int64_t most_positions);

/// The computation of a graph by rules R1 to R4: every word formed in one way, beside its operands.
StepSystem steps_of(const Dag& dag);

}  // namespace attest::io
