#pragma once

#include "core/numerics.hpp"
#include "reference/group.hpp"

namespace attest::reference {

/// How far a computed score may lie from the exact one, entry by entry of a block of scores
/// (section "Scores"), split by nature.
struct ScoreError {
  Matrix magnitude;      // A = |scale| |Q| |K|^T: what the rounding of q.k is relative to
  Matrix bias;           // linear part: softcap, ALiBi, biased accumulation
  double proved = 0;     // |error| <= magnitude * proved + bias
  double deviation = 0;  // standard deviation magnitude * deviation of the random part
};

/// Errors of the scores of the stacked rows first .. ; `exact` is scores(...) of the same rows.
ScoreError score_error(const Problem& problem, const Numerics& numerics, const Group& group,
                       std::int64_t first, const Matrix& Q, const Matrix& K, const Scores& exact);

}  // namespace attest::reference
