#include "reference/exact/loss_gradient.hpp"

#include "core/error.hpp"
#include "reference/exact/loss_terms.hpp"

namespace attest::reference {
namespace {

Matrix matrix_of(const TensorView& tensor) {
  Matrix matrix(tensor.extent(0), tensor.extent(1));
  for (std::int64_t i = 0; i < tensor.extent(0); ++i) {
    for (std::int64_t j = 0; j < tensor.extent(1); ++j) matrix(i, j) = tensor(i, j);
  }
  return matrix;
}

void check(const LossInputs& in) {
  const std::vector<Axis> tall{{"seqlen", in.A1.extent(0), 0}, {"head_dim", in.A1.extent(1), 0}};
  const std::vector<Axis> square{{"head_dim", in.A1.extent(1), 0},
                                 {"head_dim", in.A1.extent(1), 0}};
  require_shape(in.A1, "A1", tall);
  require_shape(in.A2, "A2", tall);
  require_shape(in.A3, "A3", tall);
  require_shape(in.E, "E", tall);
  require_shape(in.X, "X", square);
  require_shape(in.Y, "Y", square);
}

}  // namespace

LossTerms loss_terms(const LossInputs& inputs) {
  check(inputs);
  LossTerms t;
  t.A1 = matrix_of(inputs.A1);
  t.A2 = matrix_of(inputs.A2);
  t.A3 = matrix_of(inputs.A3);
  t.X = matrix_of(inputs.X);
  t.Y = matrix_of(inputs.Y);
  t.A1X = t.A1 * t.X;
  t.S = t.A1X * t.A2.transpose();
  t.f = t.S;
  const RowStatistics statistics = exponentiate(t.f);
  for (Eigen::Index r = 0; r < t.f.rows(); ++r) t.f.row(r) /= statistics.sum(r);
  t.h = t.A3 * t.Y;
  t.fh = t.f * t.h;
  t.c = t.fh - matrix_of(inputs.E);
  t.delta = t.c.cwiseProduct(t.fh).rowwise().sum();
  t.q = t.c * t.h.transpose();
  t.p = t.q;
  t.p.colwise() -= t.delta;
  t.p.array() *= t.f.array();
  return t;
}

Tensor square_tensor(std::string_view name, const Matrix& matrix) {
  Tensor tensor(name, DType::f64, {{"head_dim", matrix.rows(), 0}, {"head_dim", matrix.cols(), 0}});
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) tensor.set(matrix(i, j), i, j);
  }
  return tensor;
}

LossGradient loss_gradient(const LossInputs& inputs) {
  const LossTerms t = loss_terms(inputs);
  LossGradient result;
  result.loss = 0.5 * t.c.squaredNorm();
  result.dX = square_tensor("dX", t.A1.transpose() * (t.p * t.A2));
  result.dY = square_tensor("dY", t.A3.transpose() * (t.f.transpose() * t.c));
  return result;
}

}  // namespace attest::reference
