#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "io/bounds/kernel_class.hpp"
#include "io/bounds/segments.hpp"

/// The segment argument over parts of a pattern, with a price for the work of each:
/// docs/theory/bounds/patterns.md.
namespace attest::io {

/// Work that has no words in common with other parts.
struct PricedPart {
  double work = 0;  // of one copy
  std::int64_t copies = 1;
  // Most work per word in segments with up to that many usable words; increasing.
  std::function<double(double usable_words)> work_per_word;
};

using PricedParts = std::vector<PricedPart>;

/// The fast memories of a run.
struct Memories {
  std::int64_t words = 1;  // of one
  double count = 1;        // K6
};

Memories memories_of(const KernelClass& kernel, std::int64_t fast_words);

/// (U(M+X) - pY)/(M+X) rounded down, 0 if negative: full segments that follow the first ones, where
/// U(B) is the words that all work costs at the price of segments with B usable words.
double further_segments(const PricedParts& parts, const Memories& memories, const Cut& cut);

/// max over X and Y of Y + X (h - 1), h = ceil((U(M+X) - pY)/(M+X)) >= 1, of a run with all parts.
std::int64_t greatest_words_of_parts(const PricedParts& parts, const Memories& memories);

/// max over X of X (U(M+X) - pX)/(M+X) without the ceiling, of kernels that may do part of the work
/// again at the price of a word created, `repeated_work` at a time: over the X at which that work
/// is worth a word in every part.
std::int64_t greatest_with_repetitions(const PricedParts& parts, const Memories& memories,
                                       double repeated_work);

/// The greater of greatest(parts) and the sum of greatest(part) over all copies of all parts:
/// restricted to the words of a part, a run is one for that part alone.
/// [io/bounds/patterns/pattern_test "components add"]
std::int64_t whole_or_parts(const PricedParts& parts,
                            const std::function<std::int64_t(const PricedParts&)>& greatest);

}  // namespace attest::io
