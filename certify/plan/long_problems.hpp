#pragma once

#include <vector>

#include "core/abi/attest_kernel.h"
#include "proptest/values/generator.hpp"

/// The long problems of every campaign: what people serve, and where counters overflow.
namespace attest::certify {

/// With the smallest heads: causal squares of some 2 200 rows (of 8 200 too at the full tier), one
/// query and several over 65 793 keys, as many queries over few keys, packed sequences of more than
/// 65 536 tokens, and more than 256 batch entries. With heads of up to 64, 128, 256 and more
/// columns: causal squares of 1 031, 1 031, 521 and 261 rows and one query over 4 099 keys (1 031
/// keys beyond 256 columns), at the fast tier 2 211 rows and 16 421 keys too. Each as near to this
/// as the kernel claims, left out where nothing near is claimed. At the smoke tier in the first
/// claimed dtype, and the square and the row of most keys in the others; else in every claimed one.
/// Sizes and masks follow from the claims alone, values from the seed.
/// [certify/plan/long_problems_test]
std::vector<proptest::Case> long_cases(const attest_description& description, proptest::Tier tier,
                                       std::uint64_t values_seed);

}  // namespace attest::certify
