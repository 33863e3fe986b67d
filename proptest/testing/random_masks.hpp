#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "core/problem.hpp"
#include "core/rng.hpp"

/// Boolean masks by a rule for pairs, and random ones.
namespace attest::proptest::testing {

/// Tells whether a row sees a column.
using Sees = std::function<bool(std::int64_t, std::int64_t)>;

std::shared_ptr<BooleanMask> mask_of(std::int64_t rows, std::int64_t columns, const Sees& sees);

/// Ragged blocks, visible with some probability; blocks of one pair are single pairs.
Sees random_blocks(Rng& rng, std::int64_t rows, std::int64_t columns, std::int64_t block,
                   std::int64_t percent);

}  // namespace attest::proptest::testing
