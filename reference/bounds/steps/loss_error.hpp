#pragma once

#include "core/numerics.hpp"
#include "reference/exact/loss_terms.hpp"

/// The parts the loss gradient's bounds are made of. Letters as in
/// docs/theory/loss-gradient-bounds.md.
namespace attest::reference {

/// How often a row of scores, of c, a column of scores and a row of h occurs (a number >= 1 each):
/// what is equal errs alike.
struct Repeats {
  Vector scores_of_row, c_of_row;  // (seqlen), rows of f
  Vector scores_of_key, h_of_key;  // (seqlen), keys
  double row_coherence = 1;        // coherent additions of sums over rows, and over keys
  double key_coherence = 1;
};

Repeats repeats_of(const LossTerms& t, const Numerics& numerics);

/// Standard deviations of the columns under each row's weights: sqrt(sum_j f_ij b_jl^2 - (f
/// b)_il^2), rounded up. (seqlen, columns)
Matrix spread(const Matrix& f, const Matrix& columns);

/// The largest singular value, rounded up.
double largest_singular(const Matrix& matrix);

/// Errors of the weights f. Log-errors: a computed weight is f exp(individual + common).
struct LossWeightError {
  Matrix individual;  // xi: largest error of a weight apart from what its row has in common
  Matrix linear;      // its biased part
  Matrix variance;    // of its random part
  Vector common, common_linear,
      common_variance;  // of the row's normalisation, against the exact one
  Vector normal, normal_linear, normal_variance;  // of sum_j f - 1
  Vector forward_rms;          // sqrt(sum_j f (exp(log-error) - 1)^2) of the weights that form f h
  Vector forward_linear;       // sqrt(sum_j f (biased part)^2) of them
  Vector rises, likely_rises;  // of the running maximum after its start
  Vector coherence;            // coherent additions of the row's weights; 0 below kDriftTerms
};

LossWeightError weight_error(const LossTerms& t, const Numerics& numerics, const Repeats& repeats);

/// Exact quantities that both strengths need.
struct LossExact {
  LossTerms t;
  Matrix pA2, A1p;             // p A2 (seqlen, head_dim), A1^T p (head_dim, seqlen)
  Matrix fc;                   // f^T c
  Matrix fA2, fA3;             // (seqlen, head_dim)
  Matrix f_A3_magnitude;       // f |A3|
  Matrix spread_h, spread_A2;  // (seqlen, head_dim)
  Vector direction;            // largest variance of h under a row's weights in any direction
  Matrix h_magnitude;          // |A3| |Y|
  Matrix ch;                   // |c| |h|^T
};

LossExact loss_exact(const LossInputs& inputs);

/// Errors that the proved bound knows and the probabilistic one needs for products of two errors.
struct LossProved {
  Matrix dX, dY;             // bounds before the store
  Matrix f_error;            // (seqlen, seqlen)
  Matrix f_error_A3;         // f_error |A3|
  Matrix c_error, fh_error;  // (seqlen, head_dim)
  Matrix h_error;
  Vector delta_error;
};

LossProved loss_proved(const Numerics& numerics, const LossExact& exact, const LossWeightError& e);

/// The probabilistic bound before the store, and the scale of the typical error.
struct LossProbable {
  Matrix dX, dY, dX_sigma, dY_sigma;
};

LossProbable loss_probable(const Numerics& numerics, const LossExact& exact,
                           const LossWeightError& e, const Repeats& repeats,
                           const LossProved& proved);

/// Partial sums of tiles and splits that any sum may have.
inline constexpr double kLossMerges = 8;

}  // namespace attest::reference
