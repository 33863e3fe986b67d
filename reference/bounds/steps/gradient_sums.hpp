#pragma once

#include <utility>

#include "reference/bounds/steps/entry_errors.hpp"

namespace attest::reference {

/// Sums over one axis for every output row and column: error weights times |operand|.
struct GradientSums {
  Matrix proved, linear, absolute, variance;  // (outputs, columns)
  Vector terms;                               // summands per output row
  Vector coherence;                           // coherent additions, as for O
};

/// An operand's magnitudes, and its square.
struct Operand {
  Magnitudes magnitudes;
  Matrix square;

  Operand(const Matrix& operand, Magnitudes magnitudes_of)
      : magnitudes(std::move(magnitudes_of)), square(operand.cwiseAbs2()) {}
};

/// The sums of some outputs, added up tile by tile: rows of dQ over keys, keys of dK or dV over
/// rows. Errors are random in groups that form over all of an output's summands, so their
/// magnitudes and deviations are kept until the end.
class SumsOfOutputs {
 public:
  /// Shapes: operand (summands, columns).
  SumsOfOutputs(const Numerics& numerics, const Operand& operand, Eigen::Index outputs);

  /// Output r has entry (r, s) of the errors and of `magnitude`, |P| or |dS|, for its summand
  /// first + s.
  void add(std::int64_t first, const Matrix& magnitude, const WeightedErrors& errors);

  /// Output first_output + j has entry (s, j) for its summand first + s.
  void add_transposed(std::int64_t first_output, std::int64_t first, const Matrix& magnitude,
                      const WeightedErrors& errors);

  /// The same of one entry of an output, whose operand has one column.
  struct Errors {
    double proved, linear, deviation;
  };
  void add_entry(Eigen::Index output, Eigen::Index summand, double magnitude, const Errors& errors);

  /// After all summands; `terms` counts those that each output has. Leaves sums of nothing.
  GradientSums finish(const Vector& terms);

 private:
  // add_to(sum, weights, operand) adds the products of a tile's weights to a sum.
  void add_all(const Matrix& magnitude, const WeightedErrors& errors, const auto& add_to);

  const Numerics& numerics_;
  const Operand& operand_;
  GradientSums sums_;
  Matrix magnitude_, deviation_;  // (outputs, summands)
};

}  // namespace attest::reference
