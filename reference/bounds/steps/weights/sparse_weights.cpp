#include "reference/bounds/steps/weights/sparse_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.hpp"
#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/roundoff.hpp"

namespace attest::reference {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Logarithmic errors beyond this prove nothing.
constexpr double kLargestError = 300;

// Products and sums below this do not overflow float32.
constexpr double kLargestScore = 0x1p126;

Matrix filled(const CsrMatrix& matrix, bool structure) {
  Matrix dense = Matrix::Zero(matrix.rows, matrix.columns);
  for (std::int64_t i = 0; i < matrix.rows; ++i) {
    const auto columns = matrix.row_columns(i);
    for (std::size_t e = 0; e < columns.size(); ++e) {
      dense(i, columns[e]) = structure ? 1.0 : static_cast<double>(matrix.row_values(i)[e]);
    }
  }
  return dense;
}

// e^(s - lse) - e^-lse
double excess(double s, double lse) {
  return s > 0 ? -std::exp(s - lse) * std::expm1(-s) : std::exp(-lse) * std::expm1(s);
}

}  // namespace

DenseOperand::DenseOperand(const CsrMatrix& matrix)
    : values(filled(matrix, false)), magnitude(values.cwiseAbs()), present(filled(matrix, true)) {}

SparseWeights::SparseWeights(const SparseOperands& operands, const Numerics& numerics,
                             const Forward& exact)
    : Q(operands.Q),
      K(operands.K),
      V(operands.V),
      S(operands.softmax_scale * Q.values * K.values.transpose()),
      LSE(operands.Q.rows) {
  const double u = numerics.accumulator_roundoff, scale = std::abs(operands.softmax_scale);
  const Matrix products = Q.present * K.present.transpose();
  const Matrix magnitude = Q.magnitude * K.magnitude.transpose();
  support = (products.array() > 0).cast<double>();
  keys = support.rowwise().sum();
  maximum = S.rowwise().maxCoeff();
  P = G = score_error = Matrix::Zero(S.rows(), S.cols());
  w = Vector::Zero(S.rows());
  for (Eigen::Index i = 0; i < S.rows(); ++i) {
    LSE(i) = exact.LSE(0, 0, i);
    if (!full(i)) w(i) = std::exp(-LSE(i));
    for (Eigen::Index j = 0; j < S.cols(); ++j) {
      P(i, j) = std::exp(S(i, j) - LSE(i));
      if (support(i, j) == 0) continue;
      G(i, j) = full(i) ? P(i, j) : excess(S(i, j), LSE(i));
      const double lost = (products(i, j) + 2) * flush_unit(numerics) * std::max(1.0, scale);
      const bool in_range = magnitude(i, j) * std::max(1.0, scale) < kLargestScore;
      score_error(i, j) =
          in_range ? reference::gamma(products(i, j) + 2, u) * scale * magnitude(i, j) + lost
                   : kInfinity;
    }
  }
}

Matrix SparseWeights::errors(const Numerics& numerics, const Matrix& distance, const Vector& flush,
                             const Vector& rescales) const {
  const double u = numerics.accumulator_roundoff, x = exponential_error(numerics);
  Matrix g = Matrix::Zero(S.rows(), S.cols());
  for (Eigen::Index i = 0; i < S.rows(); ++i) {
    for (Eigen::Index j = 0; j < S.cols(); ++j) {
      if (support(i, j) == 0) continue;
      const double E = score_error(i, j);
      const bool subtracts = full(i) || S(i, j) + E > 0;
      const double relative = std::expm1(2 * std::log1p(x) + std::log1p(u) + rescales(i) +
                                         (subtracts ? u * distance(i, j) : 0.0));
      g(i, j) = E < kLargestError ? P(i, j) * std::expm1(E) * (1 + relative) +
                                        relative * std::abs(G(i, j)) + 3 * flush(i)
                                  : kInfinity;
    }
  }
  return g;
}

Vector SparseWeights::rises() const {
  Vector rises = Vector::Zero(S.rows());
  for (Eigen::Index i = 0; i < S.rows(); ++i) {
    double before = full(i) ? -kInfinity : 0.0;
    for (Eigen::Index j = 0; j < S.cols(); ++j) {
      if (support(i, j) == 0) continue;
      if (S(i, j) + score_error(i, j) > before) ++rises(i);
      before = std::max(before, S(i, j) - score_error(i, j));
    }
  }
  return rises;
}

Matrix gamma(const Matrix& terms, double u) {
  return terms.unaryExpr([u](double n) { return gamma(n, u); });
}

void require_sparse_contract(const Numerics& numerics) {
  require_covered(numerics);
  if (numerics.accumulation != Accumulation::nearest || numerics.p_roundoff > 0 ||
      numerics.input_roundoff > 0 || numerics.operand_roundoff > 0 ||
      numerics.scaled_q_roundoff > 0 || numerics.score_roundoff > 0 || numerics.flushed_below > 0 ||
      numerics.accumulator_roundoff > unit_roundoff(DType::f32)) {
    throw InvalidProblem(
        "sparse inputs: the bounds cover sums to nearest in f32 or f64 of unrounded operands and "
        "weights; declare accumulation nearest, no cast of P, of scores or of the inputs and no "
        "flushes_subnormals");
  }
}

Tensor bound_tensor(const char* name, const std::vector<Axis>& axes, const Matrix& bound) {
  Tensor tensor(name, DType::f64, axes);
  for (Eigen::Index i = 0; i < bound.rows(); ++i) {
    for (Eigen::Index c = 0; c < bound.cols(); ++c) {
      tensor.set(std::isnan(bound(i, c)) ? kInfinity : bound(i, c), 0, i, 0, c);
    }
  }
  return tensor;
}

Matrix matrix_of(const TensorView& tensor) {
  Matrix matrix(tensor.extent(1), tensor.extent(3));
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index c = 0; c < matrix.cols(); ++c) matrix(i, c) = tensor(0, i, 0, c);
  }
  return matrix;
}

}  // namespace attest::reference
