#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "proptest/values/generator.hpp"

/// Pairwise coverage: every two properties of two factors that a kernel claims meet in a problem
/// that counted. Two of one factor meet where a level has both, others by chance alone
/// (docs/how-to/long-campaigns.md, "Pairs").
namespace attest::certify {

/// Two levels of two factors, "mask=window dtype=bf16". Factors, in this order: mask (none,
/// causal_tl, causal_br, window, lengths, packed, boolean: sparsity patterns too; of two parts:
/// window_lengths, window_boolean, packed_window, packed_boolean; offset_window), dtype, heads
/// (equal, grouped), layout (bshd, bhsd, thd, strided), sizes (even: equal lengths, multiples of
/// 16; ragged; fewer_queries; more_queries; one_query, of several keys; one_key, of several
/// queries), dv (equal, other), scores (plain, scaled: a scale of its own, negative: a negative
/// one; the others are those of score_levels), batch (one, several), direction (forward, backward,
/// loss_gradient).
using Pairs = std::set<std::string>;

/// The 36 pairs that a problem meets in a direction. A mask of several parts counts as the two of a
/// level or else as the first it has of packed, boolean, lengths, window, causal.
/// [certify/plan/pairs/pairwise_test "pairs of a problem"]
Pairs pairs_of(const Problem& problem, Direction direction);

/// The pairs that some claimed problem meets; a pair that no problem can meet (packed sequences in
/// bshd) is not among them.  [certify/plan/pairs/pairwise_test "what is claimed can be met"]
Pairs claimed_pairs(const attest_description& description);

/// Claimed cases that together meet all the pairs given; each meets as many of those still missing
/// as any does. Sizes, values and threads are drawn with the seed.
/// [certify/plan/pairs/pairwise_test "cases that meet pairs"]
std::vector<proptest::Case> cases_meeting(const attest_description& description, Pairs missing,
                                          std::uint64_t seed);

/// The directions in which the reference judges a claimed problem of the kernel.
std::vector<Direction> claimed_directions(const attest_description& description,
                                          const Problem& problem);

}  // namespace attest::certify
