#pragma once

#include <vector>

#include "core/rng.hpp"
#include "io/pebble/attention_dag.hpp"
#include "io/pebble/game.hpp"

/// Legal traces made by hand, to try the judge with.
namespace attest::io::testing {

/// Forms the words in the order they were added, drops words at random to make room, stores those
/// that are needed again. Requires: red_pebbles more than any word has operands.
std::vector<Move> random_trace(const Dag& dag, std::int64_t red_pebbles, Rng& rng);

/// Attention forward, Softmax::unshifted, every query seeing every key: `block` queries stay, K and
/// V pass word by word.
std::vector<Move> row_streamed_trace(const Dag& dag, const AttentionShape& shape,
                                     std::int32_t block);

}  // namespace attest::io::testing
