#pragma once

#include <vector>

#include "core/abi/attest_kernel.h"
#include "proptest/generator.hpp"

/// The long problems of every campaign: what people serve, and where counters overflow.
namespace attest::certify {

/// Causal squares of some 2 200 rows (of 8 200 too at the full tier), one query and several over
/// 65 793 keys, as many queries over few keys, packed sequences of more than 65 536 tokens, and
/// more than 256 batch entries: each as near to this as the kernel claims, left out where nothing
/// near is claimed. In one dtype at the smoke tier, else in every claimed one. Sizes and masks
/// follow from the claims alone, values from the seed. [certify/long_problems_test]
std::vector<proptest::Case> long_cases(const attest_description& description, proptest::Tier tier,
                                       std::uint64_t values_seed);

}  // namespace attest::certify
