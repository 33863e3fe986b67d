#pragma once

#include <cmath>
#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "cpu/kernels/tiles/geometry.hpp"

namespace attest::cpu {

/// A block of queries of one head against a block of keys.
struct ScoreBlock {
  std::int64_t head;         // query head
  std::int64_t first, rows;  // queries, counted within the sequence
  std::int64_t key, keys;    // keys, counted within the sequence
};

/// S(rows, keys) = softcap(scale Q K^T) + ALiBi, -inf where masked; row stride = keys.
/// Q (rows, head_dim) row-major, Kt (head_dim, keys). With softcap and `slope` not null, slope gets
/// the derivative of the softcap.
void score_tile(const attest_problem& problem, const Batch& batch, const ScoreBlock& block,
                const float* Q, const float* Kt, float* S, float* slope);

/// The part of score_tile after the product: S holds Q K^T.
void finish_scores(const attest_problem& problem, const Batch& batch, const ScoreBlock& block,
                   float* S, float* slope);

/// Products become scores before what is added to them: softcap(scale S). With a softcap slope,
/// where not null, gets the derivative.
void curve_scores(const attest_problem& problem, std::int64_t count, float* S, float* slope);

/// Tells whether curve_scores has a derivative other than the scale.
inline bool has_slope(const attest_problem& problem) { return problem.softcap > 0; }

/// Adds to `count` scores of a query what depends on the positions alone. `distance(n)`: from the
/// query's aligned key to key n.
template <class Distance>
void add_biases(const attest_problem& problem, std::int64_t head, std::int64_t count,
                const Distance& distance, float* S) {
  if (problem.alibi_slopes == nullptr) return;
  const float slope = problem.alibi_slopes[head];
  for (std::int64_t n = 0; n < count; ++n) {
    S[n] -= slope * static_cast<float>(std::abs(distance(n)));
  }
}

/// Turns a row of scores without a maximum above -inf into P: -inf becomes 0, and a NaN stays, so
/// that no NaN passes for an empty row.
void clear_masked(float* row, std::int64_t keys);

/// Turns rows of scores into P = exp(S - LSE); rows with LSE = -inf become 0.
void probabilities(const float* LSE, std::int64_t rows, std::int64_t keys, float* S);

/// dP becomes dS = P (dP - delta) [slope], without the softmax scale.
void score_gradients(const float* P, const float* slope, const float* delta, std::int64_t rows,
                     std::int64_t keys, float* dP);

/// delta(i) = sum_c dO(i, c) O(i, c) - dLSE(i); dLSE may be null.
void row_deltas(const float* dO, const float* O, const float* dLSE, std::int64_t rows,
                std::int64_t columns, float* delta);

}  // namespace attest::cpu
