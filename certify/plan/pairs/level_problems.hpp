#pragma once

#include <optional>

#include "certify/plan/pairs/pair_levels.hpp"
#include "core/rng.hpp"

namespace attest::certify {

/// Draws a small problem of the levels that the kernel claims; nothing when the draw is none.
/// [certify/plan/pairs/pairwise_test "what is claimed can be met"]
std::optional<Problem> problem_of(const attest_description& description, const Levels& levels,
                                  Rng& rng);

}  // namespace attest::certify
