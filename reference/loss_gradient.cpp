#include "reference/loss_gradient.hpp"

#include "core/error.hpp"
#include "reference/group.hpp"

namespace attest::reference {
namespace {

Matrix matrix_of(const TensorView& tensor) {
  Matrix matrix(tensor.extent(0), tensor.extent(1));
  for (std::int64_t i = 0; i < tensor.extent(0); ++i) {
    for (std::int64_t j = 0; j < tensor.extent(1); ++j) matrix(i, j) = tensor(i, j);
  }
  return matrix;
}

Tensor tensor_of(std::string_view name, const Matrix& matrix) {
  Tensor tensor(name, DType::f64, {{"head_dim", matrix.rows(), 0}, {"head_dim", matrix.cols(), 0}});
  for (Eigen::Index i = 0; i < matrix.rows(); ++i) {
    for (Eigen::Index j = 0; j < matrix.cols(); ++j) tensor.set(matrix(i, j), i, j);
  }
  return tensor;
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

LossGradient loss_gradient(const LossInputs& inputs) {
  check(inputs);
  const Matrix A1 = matrix_of(inputs.A1), A2 = matrix_of(inputs.A2), A3 = matrix_of(inputs.A3);
  Matrix f = (A1 * matrix_of(inputs.X)) * A2.transpose();
  const RowStatistics statistics = exponentiate(f);
  for (Eigen::Index r = 0; r < f.rows(); ++r) f.row(r) /= statistics.sum(r);
  const Matrix h = A3 * matrix_of(inputs.Y);
  const Matrix fh = f * h;
  const Matrix c = fh - matrix_of(inputs.E);
  const Vector delta = c.cwiseProduct(fh).rowwise().sum();
  Matrix p = c * h.transpose();
  p.colwise() -= delta;
  p.array() *= f.array();
  LossGradient result;
  result.loss = 0.5 * c.squaredNorm();
  result.dX = tensor_of("dX", A1.transpose() * (p * A2));
  result.dY = tensor_of("dY", A3.transpose() * (f.transpose() * c));
  return result;
}

}  // namespace attest::reference
