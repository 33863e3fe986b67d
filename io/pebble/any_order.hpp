#pragma once

#include "io/pebble/attention_dag.hpp"
#include "io/pebble/minimum.hpp"

namespace attest::io {

/// Attention forward in the weakest class the bounds speak of: every score and every output is a
/// sum of its own products in any order and in any partial sums, results replace operands in place,
/// the softmax statistics cost nothing, scores and partial sums may be formed again. Its least
/// traffic is the severest test of a lower bound.
///
/// Requires: a valid shape, at most 64 words: (q + k) d_k + k d_v inputs, 2^d_k - 1 partial scores
/// of a visible pair, 2^r - 1 partial outputs of a row with r keys for each column. Else throws
/// InvalidProblem.  [io/pebble/minimum_test "any order"]
StepSystem any_order_forward(const AttentionShape& shape, OneKeyRow one_key);

}  // namespace attest::io
