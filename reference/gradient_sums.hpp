#pragma once

#include "core/numerics.hpp"
#include "reference/group.hpp"

namespace attest::reference {

/// Error weights of one summand P or dS per (row, key), as multiples of the operand it meets.
struct WeightedErrors {
  Matrix proved;     // largest error
  Matrix linear;     // its biased part
  Matrix deviation;  // standard deviation of the random part

  void resize(Eigen::Index rows, Eigen::Index keys);
};

/// Sums over one axis for every output row and column: errors times |operand|.
struct GradientSums {
  Matrix proved, linear, absolute, floor, variance;  // (outputs, columns)
  Vector terms;                                      // summands per output row
  Vector coherence;                                  // coherent additions, as for O
};

/// What is summed: `magnitude` is P or |dS| (rows, keys), `floor` what flushing may lose of it,
/// `visible` 1 where there is a summand.
struct Summands {
  const Matrix& magnitude;
  const Matrix& floor;
  const Matrix& visible;
  const WeightedErrors& errors;
};

/// Sums over the second axis of the summands against the rows of `operand`.
GradientSums sum_over_keys(const Numerics& numerics, const Summands& summands,
                           const Matrix& operand);

/// Sums over the first axis of the summands (dK, dV) against the rows of `operand`.
GradientSums sum_over_rows(const Numerics& numerics, const Summands& summands,
                           const Matrix& operand);

}  // namespace attest::reference
