#pragma once

#include "core/problem.hpp"

/// The same attention with its rows in the other order.
namespace attest::proptest {

/// The problem whose key j sees what key seqlen_k - 1 - j saw: band and pairs become a sparsity
/// pattern, of blocks where these divide the keys, else of single pairs. Without a mask the problem
/// itself.
///
/// Requires: one batch entry like the other: no packed sequences, no key lengths.
/// [proptest/suites/sparsity_test "pairs in the other order"]
Problem with_reversed_keys(const Problem& problem);

/// The same for queries.
Problem with_reversed_queries(const Problem& problem);

}  // namespace attest::proptest
