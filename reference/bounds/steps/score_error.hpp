#pragma once

#include "core/numerics.hpp"
#include "reference/bounds/steps/magnitudes.hpp"
#include "reference/group.hpp"

namespace attest::reference {

/// The part of a score's error that a sum over keys or rows adds up: relative to its magnitude,
/// `linear` where all summands may err the same way, `deviation` where they err independently.
struct SummedError {
  double linear = 0, deviation = 0;
};

/// How far a computed score may lie from the exact one, entry by entry of a block of scores
/// (section "Scores"), split by nature.
struct ScoreError {
  Matrix magnitude;   // A = |scale| |Q| |K|^T: what the rounding of q.k is relative to
  Matrix bias;        // linear part: softcap, ALiBi, what is lost where numbers are subnormal
  double proved = 0;  // |error| <= magnitude * proved + bias
  // A row's scores share the roundings of its Q, a key's those of its K.
  SummedError over_keys, over_rows;

  double largest(Eigen::Index r, Eigen::Index j) const {
    // Where all products are zero so is the score, even if nothing bounds `proved`.
    return magnitude(r, j) > 0 ? magnitude(r, j) * proved + bias(r, j) : bias(r, j);
  }
};

/// Returns how often a contract with `score_cast` rounds a score, and dS behind its cast: once by
/// QK^T, by each operation of the scale, softcap, bias and ALiBi, and by its derivative. A scale
/// that is a power of two rounds nothing.
struct ScoreCasts {
  double of_score, of_dS;
};
ScoreCasts score_casts(const Problem& problem);

/// Errors of the scores of the stacked rows first .. with the keys first_key ..; `exact` is
/// shaped_scores(...) of the same, `products` the matrix A and what it loses.
ScoreError score_error(const Problem& problem, const Numerics& numerics, const Group& group,
                       std::int64_t first, std::int64_t first_key, Magnitudes products,
                       const Scores& exact);

}  // namespace attest::reference
