#pragma once

#include <cstdint>
#include <vector>

#include "proptest/judge/run.hpp"

namespace attest::proptest {

/// Cases that every campaign meets whatever its seed, as far as the description claims them, for
/// kernels have paths of their own for these shapes: one query against caches of several tiles
/// (with grouped heads, several batch entries, packed sequences, key lengths, windows narrower than
/// a tile and far from key 0), one key, masks of two parts, queries whose aligned keys lie on both
/// sides of 64, 128, ... 1024, and windows that hide whole chunks of keys or queries. A mask of
/// several parts that is not claimed as a whole comes with as many of its parts as are; heads are
/// grouped and lengths differ where that is claimed, sizes are brought within the limits. Head
/// dimensions are the smallest claimed, for cost. Every problem comes in every dtype; layouts and
/// threads take turns, from one that depends on the seed. [certify/plan/plan_test "every kind"]
std::vector<Case> fixed_cases(const attest_description& description, std::uint64_t seed);

}  // namespace attest::proptest
