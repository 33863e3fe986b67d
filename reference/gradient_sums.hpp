#pragma once

#include "reference/entry_errors.hpp"

namespace attest::reference {

/// Sums over one axis for every output row and column: error weights times |operand|.
struct GradientSums {
  Matrix proved, linear, absolute, variance;  // (outputs, columns)
  Vector terms;                               // summands per output row
  Vector coherence;                           // coherent additions, as for O
};

/// |operand| and its square.
struct Operand {
  Matrix magnitude, square;

  explicit Operand(const Matrix& operand)
      : magnitude(operand.cwiseAbs()), square(operand.cwiseAbs2()) {}
};

/// Sums over the keys of a block of rows (dQ): `magnitude` is |dS| (rows, keys), `terms`
/// (rows) counts the summands.
GradientSums sum_over_keys(const Numerics& numerics, const Matrix& magnitude, const Vector& terms,
                           const WeightedErrors& errors, const Operand& operand);

/// Sums over rows (dK, dV), added up block of rows by block of rows.
class RowSums {
 public:
  RowSums(const Numerics& numerics, const Operand& operand, Eigen::Index keys);

  /// Rows first .. : `magnitude` is P or |dS| (rows, keys), `terms` (keys).
  void add(std::int64_t first, const Matrix& magnitude, const Vector& terms,
           const WeightedErrors& errors);

  /// After all rows.
  GradientSums finish();

 private:
  const Numerics& numerics_;
  const Operand& operand_;
  GradientSums sums_;
  Matrix magnitude_, deviation_;  // (keys, rows): groups form over a whole column
};

}  // namespace attest::reference
