#pragma once

#include <string>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "core/rng.hpp"

namespace attest::proptest {

/// Tells whether the kernel claims a compressed form of sparsity patterns: then half of its
/// problems have a mask of pairs.
bool claims_lists(const attest_description& description);

/// The spelling of a mask of pairs for the problem's sizes: a random boolean mask or a sparsity
/// pattern of any family but files, these more often where the kernel claims a form of them.
/// [proptest/suites/sparsity_test "every family"]
std::string draw_pairs(Rng& rng, const attest_description& description, const Problem& problem);

}  // namespace attest::proptest
