#pragma once

#include <optional>

#include "core/problem.hpp"
#include "reference/exact/sample.hpp"

/// Which rows and keys of a long problem the reference judges.
namespace attest::proptest {

/// Positions drawn at random of each sequence that is judged by sample: every set of so many is
/// equally likely. Wrong results in a share p of the rows escape with probability at most
/// (1 - p)^kRandomPositions (docs/theory/sampled-judging.md).
inline constexpr std::int64_t kRandomPositions = 96;

/// Tells whether the problem has a sequence too long to be judged whole: more than 2^22 pairs of a
/// query and a key, masked ones counted, or more than 2^15 queries.
bool judged_by_sample(const Problem& problem);

/// The rows and keys that are judged; nothing where all of them are. From a long sequence: the
/// first and the last two, those at a power of two and beside it, both sides of some tile edges,
/// and kRandomPositions at random, of queries and of keys apart. All of the other sequences. A
/// function of the problem's lengths and the seed. [proptest/judge/truth/sample_test]
std::optional<reference::Sample> sample_of(const Problem& problem, std::uint64_t seed);

/// Positions of a sequence that a sample has at most, for estimates of memory.
inline constexpr std::int64_t kMostPositions = 320;

}  // namespace attest::proptest
