// Error bounds of the loss gradient: docs/theory/loss-gradient-bounds.md.
#include "reference/bounds/loss.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/dtype/dtype_range.hpp"
#include "core/error.hpp"
#include "reference/bounds/steps/loss_error.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/threads.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

constexpr double kLargestExponent = 700;  // exp stays finite

/// (1 + a)(1 + b) - 1.
double compose(double a, double b) { return a + b + a * b; }

/// Relative error of a sum of products whose operands may be rounded once more.
double product_error(const Numerics& numerics, double roundings) {
  return compose(accumulation_error(numerics, roundings),
                 compose(numerics.input_roundoff, numerics.input_roundoff));
}

// The store, and what no finite number bounds.
ErrorBound finish(std::string_view name, const Numerics& numerics, const Matrix& exact,
                  Matrix proved, Matrix probable, Matrix sigma) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double out = numerics.output_roundoff, least = numerics.output_underflow;
  for (Eigen::Index k = 0; k < exact.size(); ++k) {
    const double magnitude = std::abs(exact.data()[k]);
    double &most = proved.data()[k], &likely = probable.data()[k], &typical = sigma.data()[k];
    most += out * (magnitude + most) + least;
    if (std::isnan(most)) most = kInfinity;
    likely += out * (magnitude + likely) + least;
    if (!(likely < most)) likely = most;
    typical += out * magnitude + least;
    if (std::isnan(typical)) typical = kInfinity;
  }
  return {square_tensor(name, proved), square_tensor(name, probable), square_tensor(name, sigma)};
}

// Upper bounds of the largest eigenvalue of the covariance of h's rows under each row of weights:
// its trace; max_j f_ij H^T H, H centred; and, where affordable, the Frobenius norm of
// sum_j f_ij H_j H_j^T, from the products H_j . H_k or from the entries of H_j H_j^T.
Vector largest_directions(const Matrix& f, const Matrix& h, const Matrix& spread_h) {
  constexpr Eigen::Index kAffordable = 5;  // in products of f with a matrix like h
  const Matrix H = h.rowwise() - h.colwise().mean();
  const Eigen::Index n = H.rows(), d = H.cols();
  const double all = largest_singular(H);
  Vector bound = spread_h.rowwise().squaredNorm().cwiseMin(f.rowwise().maxCoeff() * (all * all));
  if (d <= 2 * kAffordable) {
    Matrix squares(n, d * d);
    for (Eigen::Index j = 0; j < n; ++j) {
      for (Eigen::Index a = 0; a < d; ++a) squares.row(j).segment(a * d, d) = H(j, a) * H.row(j);
    }
    bound = bound.cwiseMin(product(f, squares).rowwise().norm());
  } else if (n <= kAffordable * d) {
    const Matrix products = product(H, H.transpose()).cwiseAbs2();
    bound = bound.cwiseMin(product(f, products).cwiseProduct(f).rowwise().sum().cwiseSqrt());
  }
  constexpr double kRoundedUp = 1.001;
  return kRoundedUp * bound;
}

}  // namespace

std::string uncovered_by_loss_bounds(const Numerics& numerics) {
  if (numerics.p_roundoff > 0 || numerics.scaled_q_roundoff > 0 || numerics.score_roundoff > 0) {
    return "the contract rounds P, scores or a scaled Q, but the loss gradient's bound covers "
           "intermediate "
           "results in the accumulator's type only; declare none of them";
  }
  if (numerics.operand_roundoff > 0) {
    return "the loss gradient's bound reads input_roundoff as that of every product's operands; "
           "declare it in place of operand_roundoff";
  }
  if (numerics.flushed_below > 0) {
    return "the contract flushes subnormals, but the loss gradient's bound covers gradual "
           "underflow "
           "alone; declare flushes_subnormals = 0";
  }
  if (numerics.lse_splits > 0) {
    return "the contract merges splits of the keys through LSE, but the loss gradient's bound "
           "covers "
           "one pass over the keys; declare lse_splits = 0";
  }
  if (has_narrow_range(numerics.accumulator_roundoff)) {
    return "the contract accumulates in a dtype whose range the loss gradient's intermediate "
           "results leave; declare accumulator f32 or bf16";
  }
  return "";
}

LossExact loss_exact(const LossInputs& inputs) {
  LossExact x;
  x.t = loss_terms(inputs);
  const LossTerms& t = x.t;
  x.pA2 = product(t.p, t.A2);
  x.A1p = transposed_product(t.A1, t.p);
  x.fc = transposed_product(t.f, t.c);
  x.fA2 = product(t.f, t.A2);
  x.fA3 = product(t.f, t.A3);
  x.f_A3_magnitude = product(t.f, t.A3.cwiseAbs());
  x.spread_h = spread(t.f, t.h);
  x.spread_A2 = spread(t.f, t.A2);
  x.direction = largest_directions(t.f, t.h, x.spread_h);
  x.h_magnitude = t.A3.cwiseAbs() * t.Y.cwiseAbs();
  x.ch = product(t.c.cwiseAbs(), t.h.cwiseAbs().transpose());
  return x;
}

LossProved loss_proved(const Numerics& numerics, const LossExact& exact, const LossWeightError& e) {
  const LossTerms& t = exact.t;
  const double u = numerics.accumulator_roundoff, flush = flush_unit(numerics);
  const Eigen::Index n = t.S.rows();
  const auto d = static_cast<double>(t.X.rows());
  const double depth = summation_depth(numerics, static_cast<double>(n)) + kLossMerges;
  const double short_sum = product_error(numerics, d + 2);
  const double long_sum = product_error(numerics, depth);
  const double row_sum = std::max(product_error(numerics, depth + e.rises.maxCoeff() + 2),
                                  compose(short_sum, long_sum));
  LossProved proved;

  // Weights.
  const Vector common = e.common.unaryExpr([](double x) { return growth(x, kLargestExponent); });
  Matrix own(n, n);  // f_error without what the row has in common
#pragma omp parallel for schedule(static) if (worth_threads(kEntryOperations * n * n))
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      own(i, j) =
          t.f(i, j) * growth(e.individual(i, j), kLargestExponent) * (1 + common(i)) + 4 * flush;
    }
  }
  proved.f_error = own + common.asDiagonal() * t.f;
  const Matrix f_most = t.f + proved.f_error;

  // h, f h, c and what an error of f h does to delta.
  proved.h_error = (short_sum * exact.h_magnitude).array() + d * flush;
  const Matrix h_most = t.h.cwiseAbs() + proved.h_error;
  const Vector moved = ((common.array() + 1) * e.forward_rms.array()).matrix();
  Matrix rest = product(f_most, proved.h_error + row_sum * h_most);
  rest += e.normal.asDiagonal() * t.fh.cwiseAbs();
  rest.rowwise() += 4 * flush * h_most.colwise().sum();
  proved.fh_error = rest + moved.asDiagonal() * exact.spread_h;
  proved.c_error = proved.fh_error + u * (t.c.cwiseAbs() + proved.fh_error);
  const Matrix c_most = t.c.cwiseAbs() + proved.c_error;
  proved.delta_error =
      c_most.cwiseProduct((1 + short_sum) * proved.fh_error + rest).rowwise().sum();

  // p, but for what is kept signed.
  const Vector c_size = c_most.rowwise().norm(), c_moved = proved.c_error.rowwise().norm();
  const Vector h_size = h_most.rowwise().norm(), h_moved = proved.h_error.rowwise().norm();
  const Vector h_exact = t.h.rowwise().norm(), fh_size = t.fh.rowwise().norm();
  const Vector delta_most = t.delta.cwiseAbs() + proved.delta_error +
                            proved.c_error.cwiseProduct(t.fh.cwiseAbs()).rowwise().sum();
  Matrix& entry = own;
#pragma omp parallel for schedule(static) if (worth_threads(kEntryOperations * n * n))
  for (Eigen::Index i = 0; i < n; ++i) {
    for (Eigen::Index j = 0; j < n; ++j) {
      const double G = std::abs(t.q(i, j) - t.delta(i)), f = t.f(i, j), most = f_most(i, j);
      const double dot = short_sum * (exact.ch(i, j) + c_moved(i) * h_size(j) +
                                      c_size(i) * h_moved(j) + delta_most(i));
      const double q_most = std::abs(t.q(i, j)) + c_moved(i) * h_size(j) + c_size(i) * h_moved(j) +
                            dot + delta_most(i);
      const double shift = c_moved(i) * (h_exact(j) + fh_size(i)) + proved.delta_error(i);
      const double single = own(i, j) * G + proved.f_error(i, j) * shift +
                            most * (c_size(i) * h_moved(j) + dot + 3 * u * (1 + u) * q_most) +
                            2 * flush;
      const double all = single + f * (common(i) * G + shift);
      entry(i, j) = single + long_sum * (1 + long_sum) * (std::abs(t.p(i, j)) + 2 * all);
    }
  }

  // dX: what a row has in common stays signed.
  const Matrix other = proved.c_error - moved.asDiagonal() * exact.spread_h;
  Matrix row_error = product(entry, t.A2.cwiseAbs());
  row_error += common.asDiagonal() * exact.pA2.cwiseAbs();
  row_error += proved.delta_error.asDiagonal() * exact.fA2.cwiseAbs();
  for (Eigen::Index i = 0; i < n; ++i) {
    const double along = other.row(i).dot(exact.spread_h.row(i));
    const double apart = moved(i) * exact.direction(i) +
                         std::min(along, other.row(i).norm() * std::sqrt(exact.direction(i)));
    const double together = proved.c_error.row(i).dot(exact.spread_h.row(i));
    row_error.row(i) += std::min(apart, together) * exact.spread_A2.row(i);
  }
  const Matrix A1 = t.A1.cwiseAbs();
  const Matrix dX_between = transposed_product(A1, exact.pA2.cwiseAbs())
                                .cwiseMax(product(exact.A1p.cwiseAbs(), t.A2.cwiseAbs()));
  proved.dX = (1 + long_sum) * transposed_product(A1, row_error) + long_sum * dX_between;

  // dY.
  Matrix own_error = proved.f_error - common.asDiagonal() * t.f;
  const Matrix own_A3 = product(own_error, t.A3.cwiseAbs());
  proved.f_error_A3 = own_A3 + common.asDiagonal() * exact.f_A3_magnitude;
  const Matrix row_A3 = exact.fA3.cwiseAbs();
  const Matrix moved_c = transposed_product(row_A3, proved.c_error);
  const Matrix f_moved = transposed_product(proved.f_error_A3, c_most);
  const Matrix absolute = f_moved + transposed_product(exact.f_A3_magnitude, c_most);
  const Matrix dY_error = transposed_product(row_A3, common.asDiagonal() * c_most) +
                          transposed_product(own_A3, c_most) + moved_c;
  const Matrix dY_between = transposed_product(t.A3.cwiseAbs(), exact.fc.cwiseAbs())
                                .cwiseMax(transposed_product(row_A3, t.c.cwiseAbs()));
  proved.dY =
      dY_error + long_sum * absolute +
      long_sum * (dY_between + f_moved + moved_c +
                  transposed_product(exact.f_A3_magnitude, proved.c_error) + long_sum * absolute);
  return proved;
}

LossBounds loss_bounds(const Numerics& numerics, const LossInputs& inputs) {
  const std::string uncovered = uncovered_by_loss_bounds(numerics);
  if (!uncovered.empty()) throw InvalidProblem("loss gradient: " + uncovered);
  if (inputs.A1.size() == 0) {
    throw InvalidProblem("A1: no elements, but the loss gradient's bound needs at least one row");
  }
  const LossExact exact = loss_exact(inputs);
  const LossTerms& t = exact.t;
  const Repeats repeats = repeats_of(t, numerics);
  const LossWeightError e = weight_error(t, numerics, repeats);
  const LossProved proved = loss_proved(numerics, exact, e);
  LossProbable probable = loss_probable(numerics, exact, e, repeats, proved);
  return {finish("bound of dX", numerics, transposed_product(t.A1, exact.pA2), proved.dX,
                 std::move(probable.dX), std::move(probable.dX_sigma)),
          finish("bound of dY", numerics, transposed_product(t.A3, exact.fc), proved.dY,
                 std::move(probable.dY), std::move(probable.dY_sigma))};
}

}  // namespace attest::reference
