#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "proptest/judge/run.hpp"

namespace attest::proptest {

/// How much a campaign does.
enum class Tier : std::uint8_t { smoke, fast, full };

std::string_view name(Tier tier);

/// The cases that a campaign of a tier generates when their number is not chosen.
std::uint64_t tier_cases(Tier tier);

/// Case `index` of a seed for a kernel that claims `description`: a function of these alone.
/// Sizes lean to tile edges, primes, 1 and 0; masks, layouts, strides, scales and value families
/// are drawn from what the kernel claims, among masks the sparsity patterns. A kernel of the loss
/// gradient gets problems of one head and one length. A few cases have more than 512 keys, 256
/// rows, 64 heads, more than four batch entries or a window of more than 256; in the others head
/// dimensions and families of values take turns, and every third has two extents that are equal
/// (of batch, heads, keys and head dimensions), every twelfth keys that fill a part of a tile. Half
/// of the scales, softcaps and slopes have more digits than bf16 and f16 hold. Past the cases of
/// the tier thirty of 31 are small: sequences to 17, head dimensions to 40, few heads.
/// [proptest/values/generator_test "generated cases", "some cases are long", "every family of
/// values", "every head dimension", "past the tier"]
Case generate(const attest_description& description, Tier tier, std::uint64_t seed,
              std::uint64_t index);

/// Simpler cases to try in place of a failing one, simplest kind of step first: fewer batch entries
/// and heads, shorter sequences, smaller head dimensions, plainer mask or sparsity pattern,
/// contiguous layout, default scale and extras, one thread, integer values.
/// [proptest/values/generator_test "shrinking"]
std::vector<Case> shrink_candidates(const Case& failing);

/// Walks shrink candidates greedily as long as the predicate holds; where it holds for none, tries
/// them with other seeds, for smaller problems draw other values. At most `budget` calls of it.
/// [proptest/values/generator_test "shrinking"]
Case shrink(const Case& failing, const std::function<bool(const Case&)>& still_fails,
            int budget = 200);

}  // namespace attest::proptest
