// Error bounds of dQ, dK and dV of sparse inputs: docs/theory/sparse-inputs.md, section "Backward".
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bounds/sparse.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/weights/sparse_weights.hpp"

namespace attest::reference {
namespace {

// Everything the three gradients share; rows are queries, columns keys unless said otherwise.
struct Pass {
  const SparseWeights& weights;
  const Numerics& numerics;
  double scale;
  Matrix dO{}, dO_magnitude{};
  Vector delta{}, delta_error{};            // exact, and ED
  Vector growth{};                          // e^EL, EL the error of the stored LSE
  Matrix x{};                               // dP - delta
  Matrix g{};                               // errors of G, the row's common factor apart
  Matrix weight{};                          // |G| + g
  Matrix pair_error{};                      // of |H' - H|, the row's common errors apart
  Matrix pair{};                            // bounds |H'|, the common factor apart
  Vector background_error{}, background{};  // of w and |w'|, the common factor apart

  double u() const { return numerics.accumulator_roundoff; }
  double flush() const { return flush_unit(numerics); }
  Vector common() const { return growth.array() - 1; }  // e^EL - 1

  // The end of an element: scale and store.
  Matrix finished(const Matrix& exact, const Matrix& error, double factor) const {
    const double out = numerics.output_roundoff + 3 * u();
    const Matrix scaled = factor * error;
    return (scaled + out * (exact.cwiseAbs() + scaled)).array() + numerics.output_underflow +
           flush() * std::max(1.0, factor);
  }
};

// 1 + |x|, for products in which one factor was flushed.
Matrix beside_flush(const Matrix& magnitude) { return magnitude.array() + 1; }

Pass prepare(const SparseWeights& weights, const Numerics& numerics, double scale, const Matrix& dO,
             const Stored& stored, const Forward& exact, const Backward& exact_backward) {
  const double u = numerics.accumulator_roundoff, flush = flush_unit(numerics);
  const Matrix O = matrix_of(exact.O.view()), O_stored = matrix_of(stored.O);
  const auto width = static_cast<double>(O.cols());
  const Eigen::Index queries = O.rows(), keys = weights.K.values.rows();
  Vector lse_error(queries), delta_error(queries);
  for (Eigen::Index i = 0; i < queries; ++i) {
    lse_error(i) = std::abs((*stored.LSE)(0, 0, i) - weights.LSE(i));
    delta_error(i) = std::abs(dO.row(i).dot(O_stored.row(i) - O.row(i))) +
                     gamma(width + 1, u) * dO.row(i).cwiseAbs().dot(O_stored.row(i).cwiseAbs()) +
                     width * flush + exact_backward.delta_error(0, 0, i);
  }
  Matrix distance = (weights.S.colwise() - weights.LSE).cwiseAbs() + weights.score_error;
  distance.colwise() += lse_error;
  Pass pass{weights, numerics, scale};
  pass.dO = dO;
  pass.dO_magnitude = dO.cwiseAbs();
  pass.delta = dO.cwiseProduct(O).rowwise().sum();
  pass.delta_error = delta_error;
  pass.growth = lse_error.array().exp();
  pass.g = weights.errors(numerics, distance, flush * pass.growth, Vector::Zero(queries));
  pass.x = (dO * weights.V.values.transpose()).colwise() - pass.delta;
  pass.weight = weights.G.cwiseAbs() + pass.g;

  const Vector entries = weights.V.present.rowwise().sum();
  pass.pair_error = pass.pair = Matrix::Zero(queries, keys);
  pass.background = pass.background_error = Vector::Zero(queries);
  const Matrix dP_terms = pass.dO_magnitude * weights.V.magnitude.transpose();
  for (Eigen::Index i = 0; i < queries; ++i) {
    if (!weights.full(i)) {
      pass.background_error(i) =
          exponential_error(numerics) * weights.w(i) + flush * pass.growth(i);
      pass.background(i) = weights.w(i) + pass.background_error(i);
    }
    for (Eigen::Index j = 0; j < keys; ++j) {
      if (weights.support(i, j) == 0) continue;
      const double known = std::abs(pass.x(i, j)) + delta_error(i);
      const double product = gamma(entries(j), u) * dP_terms(i, j) + entries(j) * flush;
      const double difference = product + u * (known + product);
      const double H = pass.weight(i, j) * (known + difference);
      pass.pair_error(i, j) = pass.g(i, j) * known + pass.weight(i, j) * difference + u * H + flush;
      pass.pair(i, j) = (1 + u) * H + flush;
    }
  }
  return pass;
}

Matrix bound_dV(const Pass& pass, const Matrix& exact) {
  const SparseWeights& weights = pass.weights;
  const Vector background_error =
      pass.growth.cwiseProduct(pass.background_error) + pass.common().cwiseProduct(weights.w);
  const Vector background = pass.growth.cwiseProduct(pass.background);
  const auto queries = static_cast<double>(weights.S.rows());
  const Vector W_terms = pass.dO_magnitude.transpose() * background;
  const Vector W_error = pass.dO_magnitude.transpose() * background_error +
                         gamma(queries, pass.u()) * W_terms +
                         Vector::Constant(W_terms.size(), queries * pass.flush());
  const Vector W = (pass.dO.transpose() * weights.w).cwiseAbs() + W_error;

  const Matrix weight_error = (pass.g.array().colwise() * pass.growth.array() +
                               weights.G.cwiseAbs().array().colwise() * pass.common().array());
  const Matrix weight = pass.weight.array().colwise() * pass.growth.array();
  Matrix terms = weight.transpose() * pass.dO_magnitude;
  terms.rowwise() += W.transpose();
  const Vector count = column_sums(weights.support);
  const Vector chain = gamma(Matrix(count.array() + 2), pass.u());
  Matrix error = weight_error.transpose() * pass.dO_magnitude;
  error.rowwise() += W_error.transpose();
  error += chain.asDiagonal() * terms;
  error.colwise() += pass.flush() * count;
  return pass.finished(exact, error, 1);
}

Matrix bound_dQ(const Pass& pass, const Matrix& exact) {
  const SparseWeights& weights = pass.weights;
  const double u = pass.u(), flush = pass.flush();
  const auto width = static_cast<double>(weights.V.values.cols());
  // The rank-one part R = dO V^T K - delta sum K.
  const Matrix VK = weights.V.values.transpose() * weights.K.values;
  const Matrix VK_count = weights.V.present.transpose() * weights.K.present;
  const Matrix VK_error =
      gamma(VK_count, u).cwiseProduct(weights.V.magnitude.transpose() * weights.K.magnitude) +
      flush * VK_count;
  const Vector sum_K = column_sums(weights.K.values);
  const Vector K_count = column_sums(weights.K.present);
  const Vector K_error = gamma(Matrix(K_count), u).cwiseProduct(column_sums(weights.K.magnitude));
  const Matrix R = pass.dO * VK - pass.delta * sum_K.transpose();
  const Vector delta = pass.delta.cwiseAbs() + pass.delta_error;
  const Matrix R_error = (pass.dO_magnitude * VK_error + delta * K_error.transpose() +
                          gamma(width + 2, u) * (pass.dO_magnitude * (VK.cwiseAbs() + VK_error) +
                                                 delta * (sum_K.cwiseAbs() + K_error).transpose()))
                             .array() +
                         (width + 1) * flush;
  const Matrix R_known = R.cwiseAbs() + pass.delta_error * sum_K.cwiseAbs().transpose();

  // Errors of delta and of LSE are common to the row and keep their signs.
  const Matrix delta_part =
      pass.delta_error.asDiagonal() * (weights.P * weights.K.values).cwiseAbs();
  const Matrix own = pass.background_error.asDiagonal() * R_known +
                     pass.background.asDiagonal() * R_error + pass.pair_error * weights.K.magnitude;
  const Matrix terms =
      pass.background.asDiagonal() * (R_known + R_error) + pass.pair * weights.K.magnitude;
  const Vector chain = gamma(Matrix(weights.keys.array() + 4), u);
  Matrix error = pass.growth.asDiagonal() * (delta_part + own + chain.asDiagonal() * terms);
  if (pass.scale > 0) error += pass.common().asDiagonal() * exact.cwiseAbs() / pass.scale;
  error.colwise() += flush * Vector(weights.keys.array() + 2);
  return pass.finished(exact, error, pass.scale);
}

Matrix bound_dK(const Pass& pass, const Matrix& exact) {
  const SparseWeights& weights = pass.weights;
  const double u = pass.u(), flush = pass.flush();
  const Vector Q_count = column_sums(weights.Q.present);
  const Vector chain_Q = gamma(Matrix(Q_count.array() + 2), u);
  // A = sum_i w_i dO_i^T Q_i and b = sum_i w_i delta_i Q_i: own errors, and magnitudes as computed.
  const Vector background = pass.growth.cwiseProduct(pass.background);
  const Vector background_error = pass.growth.cwiseProduct(pass.background_error);
  const Vector common = pass.common().cwiseProduct(weights.w);
  const Vector delta = pass.delta.cwiseAbs() + pass.delta_error;
  const Matrix flushed =
      Matrix::Constant(pass.dO.cols(), pass.dO.rows(), flush) * beside_flush(weights.Q.magnitude);
  const Matrix dO = pass.dO_magnitude.transpose();
  const Matrix A_error =
      dO * background_error.asDiagonal() * weights.Q.magnitude +
      (dO * background.asDiagonal() * weights.Q.magnitude) * chain_Q.asDiagonal() + flushed;
  const Matrix A = (pass.dO.transpose() * weights.w.asDiagonal() * weights.Q.values).cwiseAbs() +
                   A_error + dO * common.asDiagonal() * weights.Q.magnitude;
  const Matrix Q_t = weights.Q.magnitude.transpose();
  const Vector b_error = Q_t * background_error.cwiseProduct(delta) +
                         chain_Q.cwiseProduct(Q_t * background.cwiseProduct(delta)) +
                         flush * beside_flush(Q_t) * Vector::Ones(Q_t.cols());
  const Vector b =
      (weights.Q.values.transpose() * weights.w.cwiseProduct(pass.delta)).cwiseAbs() + b_error +
      Q_t *
          (common.cwiseProduct(pass.delta.cwiseAbs()) + background.cwiseProduct(pass.delta_error));

  // Errors of delta and of LSE are common to a row of pairs, which P weighs.
  const Matrix inherited =
      (weights.P.cwiseProduct(pass.x.cwiseAbs()).array().colwise() * pass.common().array() +
       weights.P.array().colwise() * pass.growth.cwiseProduct(pass.delta_error).array());
  Matrix error =
      (inherited + pass.growth.asDiagonal() * pass.pair_error).transpose() * weights.Q.magnitude +
      weights.V.magnitude * A_error;
  error.rowwise() += b_error.transpose();
  Matrix terms = (pass.growth.asDiagonal() * pass.pair).transpose() * weights.Q.magnitude +
                 weights.V.magnitude * A;
  terms.rowwise() += b.transpose();
  const Vector count = column_sums(weights.support) + weights.V.present.rowwise().sum();
  const Vector chain = gamma(Matrix(count.array() + 3), u);
  error += chain.asDiagonal() * terms;
  error.colwise() += flush * count;
  return pass.finished(exact, error, pass.scale);
}

}  // namespace

SparseBackwardBounds sparse_backward_bounds(const SparseOperands& operands,
                                            const Numerics& numerics, const TensorView& dO,
                                            const Stored& stored, const Forward& exact_forward,
                                            const Backward& exact_backward) {
  operands.validate();
  require_sparse_contract(numerics);
  const SparseWeights weights(operands, numerics, exact_forward);
  const Pass pass = prepare(weights, numerics, std::abs(operands.softmax_scale), matrix_of(dO),
                            stored, exact_forward, exact_backward);
  const Problem problem = operands.dense_problem();
  return {bound_tensor("bound of dQ", problem.q_axes(),
                       bound_dQ(pass, matrix_of(exact_backward.dQ.view()))),
          bound_tensor("bound of dK", problem.k_axes(),
                       bound_dK(pass, matrix_of(exact_backward.dK.view()))),
          bound_tensor("bound of dV", problem.v_axes(),
                       bound_dV(pass, matrix_of(exact_backward.dV.view())))};
}

}  // namespace attest::reference
