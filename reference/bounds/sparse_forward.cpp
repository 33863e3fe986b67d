// Error bounds of O and LSE of sparse inputs: docs/theory/sparse-inputs.md, section "Forward".
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bounds/sparse.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/weights/sparse_weights.hpp"

namespace attest::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Terms that one row's elements share, relative to the row's exact sum of weights.
struct RowSum {
  double background;  // of |w'|: bound, and what it errs
  double background_error;
  double weights_error;  // of the sum, from what it adds
  double rounding;       // from adding
  double flush;          // of one product
  double rescales;       // roundings of a sum that is multiplied as the maximum rises
};

// Terms of V that the elements of O need.
struct Columns {
  Vector sums, errors;  // sum_j V_jc and what its addition errs
  Matrix terms;         // entries of V over each row's support, (seqlen_q, head_dim_v)
};

Columns columns_of(const SparseWeights& weights, double u) {
  const Vector entries = column_sums(weights.V.present);
  const Vector magnitudes = column_sums(weights.V.magnitude);
  return {column_sums(weights.V.values), gamma(Matrix(entries), u).cwiseProduct(magnitudes),
          weights.support * weights.V.present};
}

double bound_output(const SparseWeights& weights, const Matrix& g, const Numerics& numerics,
                    const Columns& columns, const RowSum& row, Eigen::Index i, Eigen::Index c,
                    double O) {
  const double u = numerics.accumulator_roundoff;
  double from_weights = 0, terms = 0;
  for (Eigen::Index j = 0; j < g.cols(); ++j) {
    if (weights.support(i, j) == 0) continue;
    const double V = weights.V.values(j, c);
    from_weights += g(i, j) * std::abs(V - O);
    terms += (std::abs(weights.G(i, j)) + g(i, j)) * std::abs(V);
  }
  const auto keys = static_cast<double>(g.cols());
  from_weights += row.background_error * std::abs(columns.sums(c) - keys * O);
  from_weights /= 1 - row.weights_error;
  terms += row.background * (std::abs(columns.sums(c)) + columns.errors(c));
  const double rounding = row.background * columns.errors(c) +
                          gamma(columns.terms(i, c) + 2 + row.rescales, u) * terms +
                          (columns.terms(i, c) + 1) * row.flush;
  const double magnitude = std::abs(O);
  const double error = from_weights + (rounding + (magnitude + from_weights) * row.rounding) /
                                          (1 - row.weights_error - row.rounding);
  return error + (numerics.output_roundoff + 3 * u) * (magnitude + error) +
         numerics.output_underflow;
}

double bound_lse(const SparseWeights& weights, const Numerics& numerics, const RowSum& row,
                 Eigen::Index i, double shift_error) {
  const double of_sum = -std::log1p(-(row.weights_error + row.rounding));
  const double logarithm = std::abs(weights.LSE(i) - weights.maximum(i)) + shift_error + of_sum;
  const double error = of_sum + exponential_error(numerics) * logarithm;
  return error +
         (numerics.accumulator_roundoff + numerics.output_roundoff) *
             (std::abs(weights.LSE(i)) + error) +
         numerics.output_underflow;
}

// Logarithms: each rise costs an exponential, and their arguments add up to the way that the
// maximum has come.
Vector rescale_errors(const SparseWeights& weights, const Vector& rises, const Vector& shift_error,
                      const Numerics& numerics) {
  Vector errors = Vector::Zero(rises.size());
  for (Eigen::Index i = 0; i < rises.size(); ++i) {
    if (rises(i) == 0) continue;
    const double way = weights.maximum(i) - weights.S.row(i).minCoeff() + 4 * shift_error(i);
    errors(i) =
        rises(i) * std::log1p(exponential_error(numerics)) + numerics.accumulator_roundoff * way;
  }
  return errors;
}

}  // namespace

SparseForwardBounds sparse_forward_bounds(const SparseOperands& operands, const Numerics& numerics,
                                          const Forward& exact, Subtracted subtracted) {
  operands.validate();
  require_sparse_contract(numerics);
  const double u = numerics.accumulator_roundoff, x = exponential_error(numerics);
  const SparseWeights weights(operands, numerics, exact);
  const Eigen::Index queries = weights.S.rows(), keys = weights.S.cols();
  const Vector shift_error = weights.score_error.rowwise().maxCoeff();
  const Vector flush = flush_unit(numerics) * shift_error.array().exp();
  Matrix distance = -weights.S;
  distance.colwise() += weights.maximum + 2 * shift_error;
  const bool runs = subtracted == Subtracted::running_maximum;
  const Vector rises = runs ? weights.rises() : Vector(Vector::Zero(queries));
  const Matrix g = weights.errors(numerics, distance, flush,
                                  rescale_errors(weights, rises, shift_error, numerics));
  const Columns columns = columns_of(weights, u);
  Matrix O = Matrix::Constant(queries, operands.V.columns, kInfinity);
  Matrix LSE = Matrix::Constant(queries, 1, kInfinity);
  for (Eigen::Index i = 0; i < queries; ++i) {
    RowSum row{};
    if (!weights.full(i)) {
      row.background_error = x * weights.w(i) + flush(i);
      row.background = weights.w(i) + row.background_error;
    }
    const auto all = static_cast<double>(keys);
    row.weights_error = all * row.background_error + g.row(i).sum();
    row.rounding = gamma(weights.keys(i) + 2 + row.rescales, u) *
                   (all * row.background + weights.G.row(i).cwiseAbs().sum() + g.row(i).sum());
    row.flush = flush(i);
    row.rescales = rises(i);
    // Half of the sum may be wrong: beyond, little is proved, and the logarithm soon nothing.
    if (!(row.weights_error + row.rounding < 0.5)) continue;
    LSE(i, 0) = bound_lse(weights, numerics, row, i, shift_error(i));
    for (Eigen::Index c = 0; c < O.cols(); ++c) {
      O(i, c) = bound_output(weights, g, numerics, columns, row, i, c, exact.O(0, i, 0, c));
    }
  }
  const Problem problem = operands.dense_problem();
  Tensor lse("bound of LSE", DType::f64, problem.lse_axes());
  for (Eigen::Index i = 0; i < queries; ++i) lse.set(LSE(i, 0), 0, 0, i);
  return {bound_tensor("bound of O", problem.o_axes(), O), lse};
}

}  // namespace attest::reference
