#include "proptest/signatures/loss_alternatives.hpp"

#include <Eigen/Core>

#include "core/numerics.hpp"

namespace attest::proptest {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

Matrix matrix_of(const Tensor& tensor) {
  const TensorView& view = tensor.view();
  Matrix result(view.extent(0), view.extent(1));
  for (std::int64_t i = 0; i < view.extent(0); ++i) {
    for (std::int64_t j = 0; j < view.extent(1); ++j) result(i, j) = view(i, j);
  }
  return result;
}

Tensor tensor_of(const char* name, const Matrix& matrix) {
  Tensor result(name, DType::f64, {{"head_dim", matrix.rows(), 0}, {"head_dim", matrix.cols(), 0}});
  for (std::int64_t i = 0; i < matrix.rows(); ++i) {
    for (std::int64_t j = 0; j < matrix.cols(); ++j) result.set(matrix(i, j), i, j);
  }
  return result;
}

// Weights of every row; those of keys that are dropped are 0.
Matrix weights(const LossValues& values, LossDeviation deviation) {
  const Matrix scores =
      matrix_of(values.A1) * matrix_of(values.X) * matrix_of(values.A2).transpose();
  const bool drops = deviation == LossDeviation::last_key_dropped && scores.cols() > 1;
  const std::int64_t keys = scores.cols() - (drops ? 1 : 0);
  const Vector maximum = scores.leftCols(keys).rowwise().maxCoeff();
  Matrix f = Matrix::Zero(scores.rows(), scores.cols());
  f.leftCols(keys) = (scores.leftCols(keys).colwise() - maximum).array().exp();
  if (deviation == LossDeviation::normaliser_missing) return f;
  const Vector sums = f.rowwise().sum();
  return sums.cwiseInverse().asDiagonal() * f;
}

Tensor transposed(const Tensor& tensor) { return tensor_of("X", matrix_of(tensor).transpose()); }

Tensor times(const Tensor& tensor, double factor) {
  Tensor product = tensor;
  for (std::int64_t e = 0; e < product.view().size(); ++e) product.doubles()[e] *= factor;
  return product;
}

}  // namespace

DeviantLoss deviant_loss(const LossValues& values, LossDeviation deviation) {
  const Matrix A1 = matrix_of(values.A1), A2 = matrix_of(values.A2), A3 = matrix_of(values.A3),
               E = matrix_of(values.E), Y = matrix_of(values.Y);
  const Matrix h = A3 * Y, h_size = A3.cwiseAbs() * Y.cwiseAbs();
  const Matrix f = weights(values, deviation);
  const Matrix fh = f * h, fh_size = f * h_size;
  const Matrix c = fh - E, c_size = fh_size + E.cwiseAbs();
  Vector delta = c.cwiseProduct(fh).rowwise().sum();
  Vector delta_size = c_size.cwiseProduct(fh_size).rowwise().sum();
  if (deviation == LossDeviation::delta_omitted) {
    delta.setZero();
    delta_size.setZero();
  }
  const Matrix q = (c * h.transpose()).colwise() - delta;
  const Matrix q_size = (c_size * h_size.transpose()).colwise() + delta_size;
  const Matrix p = f.cwiseProduct(q), p_size = f.cwiseProduct(q_size);
  return {{tensor_of("dX", A1.transpose() * p * A2),
           tensor_of("dX", A1.cwiseAbs().transpose() * p_size * A2.cwiseAbs())},
          {tensor_of("dY", A3.transpose() * f.transpose() * c),
           tensor_of("dY", A3.cwiseAbs().transpose() * f.transpose() * c_size)}};
}

std::vector<Alternative> loss_alternatives(const attest_description& description,
                                           const Problem& problem, const LossValues& values,
                                           const LossTruth& truth) {
  std::vector<Alternative> alternatives;
  const reference::LossBounds& bounds = truth.bounds();
  const auto add = [&](const char* name, const std::string& words, const Expected& dX,
                       const Expected& dY) {
    Alternative alternative{name, "the loss gradient " + words, {dX}};
    if (writes_dy(description)) alternative.outputs.push_back(dY);
    alternatives.push_back(std::move(alternative));
  };
  const Expected dX{"dX", truth.exact().dX, bounds.dX}, dY{"dY", truth.exact().dY, bounds.dY};
  const auto zero = [](const Expected& of) {
    const auto none = [](const Tensor& tensor) { return times(tensor, 0); };
    return Expected{
        of.output,
        none(of.value),
        {none(of.bound.deterministic), none(of.bound.probabilistic), none(of.bound.sigma)}};
  };
  add("zero_dx", "where dX is zero", zero(dX), dY);
  if (writes_dy(description)) add("zero_dy", "where dY is zero", dX, zero(dY));

  // Exact gradients of other inputs, with bounds of their own.
  const auto other = [&](const char* name, const char* words, Tensor LossValues::*changed,
                         const Tensor& with) {
    LossValues inputs = values;
    inputs.*changed = with;
    const reference::LossGradient exact = reference::loss_gradient(inputs.inputs());
    const reference::LossBounds own =
        reference::loss_bounds(resolve(description.numerics, problem.dtype), inputs.inputs());
    add(name, words, {"dX", exact.dX, own.dX}, {"dY", exact.dY, own.dY});
  };
  other("target_ignored", "without E", &LossValues::E, times(values.E, 0));
  other("target_negated", "with E added to f h instead of taken from it", &LossValues::E,
        times(values.E, -1));
  other("x_transposed", "with X transposed", &LossValues::X, transposed(values.X));
  other("y_transposed", "with Y transposed", &LossValues::Y, transposed(values.Y));

  const DeviantLoss right = deviant_loss(values, LossDeviation::none);
  const auto deviant = [&](const char* name, const char* words, LossDeviation deviation) {
    const DeviantLoss wrong = deviant_loss(values, deviation);
    const auto expect = [&](const char* output, const Weighed& of, const Weighed& as_it_should,
                            const reference::ErrorBound& bound) {
      return Expected{
          output, of.value,
          bound_like(bound, as_it_should.magnitude, of.value, of.magnitude, problem.dtype)};
    };
    add(name, words, expect("dX", wrong.dX, right.dX, bounds.dX),
        expect("dY", wrong.dY, right.dY, bounds.dY));
  };
  deviant("delta_omitted", "without delta, the row sums of c times f h",
          LossDeviation::delta_omitted);
  deviant("last_key_dropped", "without the last key", LossDeviation::last_key_dropped);
  deviant("normaliser_missing", "with weights that are not divided by their row's sum",
          LossDeviation::normaliser_missing);
  return alternatives;
}

}  // namespace attest::proptest
