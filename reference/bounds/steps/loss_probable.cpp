// The probabilistic bound of the loss gradient: docs/theory/loss-gradient-bounds.md.
#include <algorithm>
#include <cmath>

#include "reference/bounds/steps/loss_error.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/threads.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

double square(double x) { return x * x; }

// Adds up one output: variance, linear part, coherent part of sigma.
struct Parts {
  Matrix variance, linear, coherent;
};

Matrix likely(const Parts& parts, double inflation) {
  return inflation * (kLambda * parts.variance.cwiseSqrt() + parts.linear);
}

Matrix typical(const Parts& parts) {
  return parts.variance.cwiseSqrt() + parts.linear + parts.coherent;
}

// Row-wise quantities of the random and of the biased errors.
struct Rows {
  Matrix c_variance;  // of c, but for errors of weights and of h: (seqlen, head_dim)
  Matrix c_linear;
  Vector largest_variance;  // max_j f_ij D_ij
  Vector h_variance;        // per key: largest variance of an element of h
  double h_common = 0;      // of (f h)'s part from h, any row and direction
};

class Probable {
 public:
  Probable(const Numerics& numerics, const LossExact& exact, const LossWeightError& e,
           const Repeats& repeats, const LossProved& proved)
      : numerics_(numerics),
        x_(exact),
        t_(exact.t),
        e_(e),
        repeats_(repeats),
        proved_(proved),
        n_(t_.S.rows()),
        u_(numerics.accumulator_roundoff),
        c_all_(square(largest_singular(t_.c))),
        short_walk_(accumulation_deviation(numerics, static_cast<double>(t_.X.rows()) + 2)),
        operand_(2 * numerics.input_roundoff + square(numerics.input_roundoff)),
        short_linear_(accumulation_bias(numerics, static_cast<double>(t_.X.rows()) + 2) +
                      operand_) {
    const double terms = static_cast<double>(n_);
    const double depth = summation_depth(numerics, terms) + kLossMerges;
    long_walk_ = accumulation_deviation(numerics, depth);
    long_bias_ = accumulation_bias(numerics, depth) + operand_;
    row_drift_ = u_ * drift_of(repeats.row_coherence, terms, depth);
    key_drift_ = u_ * drift_of(repeats.key_coherence, terms, depth);
    both_rows_ = repeats.scores_of_row.cwiseMin(repeats.c_of_row);
    both_keys_ = repeats.scores_of_key.cwiseMin(repeats.h_of_key);
    square_f_ = t_.f.cwiseAbs2().cwiseProduct(e.variance);
    rows_ = rows();
  }

  double inflation() const {
    const Matrix entries = kLambda * e_.variance.cwiseSqrt() + e_.linear;
    const Vector common = kLambda * e_.common_variance.cwiseSqrt() + e_.common_linear;
    const double worst = entries.maxCoeff() + common.maxCoeff();
    constexpr double kLargestExponent = 700;
    return 1.001 * std::exp(std::min(2 * worst, kLargestExponent));
  }

  Parts dX() const {
    const Matrix A1 = t_.A1.cwiseAbs(), A1_square = A1.cwiseAbs2();
    const Matrix A2 = t_.A2.cwiseAbs(), A2_square = A2.cwiseAbs2();
    const Matrix p = t_.p.cwiseAbs();
    Matrix variance(n_, n_), linear(n_, n_);
    entries(variance, linear);
    Matrix row_variance = product(variance, A2_square), row_linear = product(linear, A2);
    add_common(row_variance, row_linear);
    const Matrix p_A2 = product(p, A2), A1_p = transposed_product(A1, p);
    const Matrix between_left = transposed_product(A1, x_.pA2.cwiseAbs());
    const Matrix between_right = product(x_.A1p.cwiseAbs(), A2);
    const Matrix left = transposed_product(A1_square, both_rows_.asDiagonal() * p_A2.cwiseAbs2()) +
                        between_left.cwiseAbs2();
    const Matrix right =
        product(A1_p.cwiseAbs2() * both_keys_.asDiagonal(), A2_square) + between_right.cwiseAbs2();
    const Matrix all = transposed_product(A1, p_A2);
    const Matrix between = between_left.cwiseMax(between_right);
    Parts parts;
    parts.variance =
        transposed_product(A1_square, row_variance) + square(long_walk_) * left.cwiseMax(right);
    parts.linear =
        transposed_product(A1, row_linear) + (2 * long_bias_ + key_drift_ + row_drift_) * all;
    parts.coherent = u_ * (repeats_.row_coherence + repeats_.key_coherence) * between;
    return parts;
  }

  Parts dY() const {
    const Matrix A3 = t_.A3.cwiseAbs(), c = t_.c.cwiseAbs();
    const Matrix A3_square = A3.cwiseAbs2(), c_square = c.cwiseAbs2();
    const Matrix row_A3 = x_.fA3.cwiseAbs();
    const Matrix f_c = transposed_product(t_.f, c);
    const Matrix between_left = transposed_product(A3, x_.fc.cwiseAbs());
    const Matrix between_right = transposed_product(row_A3, c);
    const Matrix left =
        transposed_product(A3_square, repeats_.scores_of_key.asDiagonal() * f_c.cwiseAbs2()) +
        between_left.cwiseAbs2();
    const Matrix right = transposed_product(x_.f_A3_magnitude.cwiseAbs2(),
                                            repeats_.scores_of_row.asDiagonal() * c_square) +
                         between_right.cwiseAbs2();
    Matrix c_variance = rows_.c_variance;
    c_variance.array() += rows_.h_common;
    c_variance += rows_.largest_variance.asDiagonal() * x_.spread_h.cwiseAbs2();
    c_variance += e_.common_variance.asDiagonal() * c.cwiseAbs2();
    c_variance += e_.normal_variance.asDiagonal() * t_.fh.cwiseAbs2();
    Matrix c_linear = rows_.c_linear + e_.common_linear.asDiagonal() * c;
    c_linear += e_.normal_linear.asDiagonal() * t_.fh.cwiseAbs();
    c_linear += e_.forward_linear.asDiagonal() * x_.spread_h;
    Matrix weights = t_.f.cwiseProduct(e_.linear);
    weights.array() += 4 * flush_unit(numerics_);
    const Matrix all = transposed_product(x_.f_A3_magnitude, c);
    Parts parts;
    parts.variance = transposed_product(product(square_f_, A3_square), c_square) +
                     transposed_product(row_A3.cwiseAbs2(), c_variance) +
                     square(long_walk_) * left.cwiseMax(right);
    parts.linear = transposed_product(product(weights, A3), c) +
                   transposed_product(row_A3, c_linear) +
                   transposed_product(proved_.f_error_A3, proved_.c_error) +
                   (2 * long_bias_ + row_drift_ + key_drift_) * all;
    parts.coherent = u_ * (repeats_.row_coherence + repeats_.key_coherence) *
                     between_left.cwiseMax(between_right);
    return parts;
  }

 private:
  Rows rows() const {
    Rows rows;
    rows.h_variance =
        square(short_walk_) *
        x_.h_magnitude.cwiseAbs2().rowwise().maxCoeff().cwiseProduct(repeats_.h_of_key);
    // |f|_2^2 <= largest column sum, the row sums being 1.
    rows.h_common = rows.h_variance.maxCoeff() * std::max(1.0, t_.f.colwise().sum().maxCoeff());
    rows.largest_variance = t_.f.cwiseProduct(e_.variance).rowwise().maxCoeff();
    const Matrix second_moment = t_.fh.cwiseAbs2() + x_.spread_h.cwiseAbs2();  // >= (f |h|)^2
    const Matrix f_h = second_moment.cwiseSqrt();
    const double h_linear = short_linear_ * x_.h_magnitude.maxCoeff();
    const double terms = static_cast<double>(n_);
    rows.c_variance = Matrix(n_, t_.c.cols());
    rows.c_linear = Matrix(n_, t_.c.cols());
    for (Eigen::Index i = 0; i < n_; ++i) {
      const double depth = summation_depth(numerics_, terms) + e_.likely_rises(i) + kLossMerges;
      const double walk = accumulation_deviation(numerics_, depth);
      const double bias = accumulation_bias(numerics_, depth) + operand_ +
                          u_ * drift_of(e_.coherence(i), terms, depth);
      rows.c_variance.row(i) = repeats_.scores_of_row(i) * square(walk) * second_moment.row(i) +
                               repeats_.c_of_row(i) * square(u_) * t_.c.row(i).cwiseAbs2();
      rows.c_linear.row(i) = (bias * f_h.row(i)).array() + h_linear;
    }
    return rows;
  }

  // Errors of single entries of p: independent but for repetitions.
  void entries(Matrix& variance, Matrix& linear) const {
    const double flush = flush_unit(numerics_);
    const Vector c_moved = proved_.c_error.rowwise().norm();
    const Vector fh_moved = proved_.fh_error.rowwise().norm();
    const Vector h_moved = proved_.h_error.rowwise().norm(), h_size = t_.h.rowwise().norm();
    const Vector fh_size = t_.fh.rowwise().norm();
#pragma omp parallel for schedule(static) if (worth_threads(kEntryOperations * n_ * n_))
    for (Eigen::Index i = 0; i < n_; ++i) {
      const double delta = std::abs(t_.delta(i));
      for (Eigen::Index j = 0; j < n_; ++j) {
        const double f = t_.f(i, j), p = std::abs(t_.p(i, j)), q = std::abs(t_.q(i, j));
        const double dot = x_.ch(i, j) + delta;
        const double rounding =
            square(short_walk_ * dot) * repeats_.c_of_row(i) * repeats_.h_of_key(j) +
            square(3 * u_ * (q + delta)) * both_rows_(i) * both_keys_(j);
        variance(i, j) =
            p * p * e_.variance(i, j) + f * f * (c_all_ * rows_.h_variance(j) + rounding);
        const double second = proved_.f_error(i, j) *
                                  (c_moved(i) * (h_size(j) + fh_size(i)) + proved_.delta_error(i)) +
                              f * c_moved(i) * (h_moved(j) + fh_moved(i));
        linear(i, j) =
            p * e_.linear(i, j) + f * short_linear_ * dot + second + flush * (6 + 4 * (q + delta));
      }
    }
  }

  // Errors that all entries of a row of p share meet p A2, f A2 or the covariance of A2 and h.
  void add_common(Matrix& variance, Matrix& linear) const {
#pragma omp parallel for schedule(static) if (worth_threads(kEntryOperations * n_ * n_))
    for (Eigen::Index i = 0; i < n_; ++i) {
      const auto c_square = t_.c.row(i).cwiseAbs2();
      const double fh_square = t_.fh.row(i).squaredNorm();
      const double direction = x_.direction(i), delta_square = square(t_.delta(i));
      const double f_square_h = t_.f.row(i).cwiseAbs2().dot(rows_.h_variance.transpose());
      const double dots = t_.c.row(i).cwiseAbs().dot(
          (t_.fh.row(i).cwiseAbs2() + x_.spread_h.row(i).cwiseAbs2()).cwiseSqrt());
      const double f_q = t_.f.row(i).dot(t_.q.row(i).cwiseAbs());
      double dot_variance = 0, p_variance = 0, spread_q = 0;
      for (Eigen::Index j = 0; j < n_; ++j) {
        dot_variance += square(t_.f(i, j) * x_.ch(i, j)) * repeats_.h_of_key(j);
        p_variance += square(t_.p(i, j)) * e_.variance(i, j);
        spread_q += std::abs(t_.p(i, j) * (t_.q(i, j) - t_.delta(i)));
      }
      const double delta_variance =
          p_variance + c_square.dot(rows_.c_variance.row(i)) +
          delta_square * e_.normal_variance(i) + c_all_ * f_square_h +
          both_rows_(i) * (square(short_walk_ * dots) + square(short_walk_) * dot_variance +
                           square(long_walk_ * f_q));
      const double delta_linear = e_.forward_linear(i) * std::sqrt(spread_q) +
                                  std::abs(t_.delta(i)) * e_.normal_linear(i) +
                                  t_.c.row(i).cwiseAbs().dot(rows_.c_linear.row(i)) +
                                  (2 * short_linear_ + long_bias_ + key_drift_) * dots;
      // Errors of c meet the covariance of A2 and h: at most spread(A2) sqrt(direction) per unit.
      const double own = rows_.c_variance.row(i).maxCoeff();
      const double c_variance =
          rows_.largest_variance(i) * square(direction) +
          direction * (own + rows_.h_common + fh_square * e_.normal_variance(i));
      const double c_linear = e_.forward_linear(i) * direction +
                              std::sqrt(direction) * (std::sqrt(fh_square) * e_.normal_linear(i) +
                                                      rows_.c_linear.row(i).norm());
      variance.row(i) += e_.common_variance(i) * x_.pA2.row(i).cwiseAbs2() +
                         delta_variance * x_.fA2.row(i).cwiseAbs2() +
                         c_variance * x_.spread_A2.row(i).cwiseAbs2();
      linear.row(i) += e_.common_linear(i) * x_.pA2.row(i).cwiseAbs() +
                       delta_linear * x_.fA2.row(i).cwiseAbs() + c_linear * x_.spread_A2.row(i);
    }
  }

  const Numerics& numerics_;
  const LossExact& x_;
  const LossTerms& t_;
  const LossWeightError& e_;
  const Repeats& repeats_;
  const LossProved& proved_;
  const Eigen::Index n_;
  const double u_;
  const double c_all_;  // bounds the square of |c x| for any unit vector x
  const double short_walk_, operand_, short_linear_;
  double long_walk_ = 0, long_bias_ = 0, row_drift_ = 0, key_drift_ = 0;
  Vector both_rows_, both_keys_;
  Matrix square_f_;
  Rows rows_;
};

}  // namespace

LossProbable loss_probable(const Numerics& numerics, const LossExact& exact,
                           const LossWeightError& e, const Repeats& repeats,
                           const LossProved& proved) {
  const Probable probable(numerics, exact, e, repeats, proved);
  const Parts dX = probable.dX(), dY = probable.dY();
  const double inflation = probable.inflation();
  return {likely(dX, inflation), likely(dY, inflation), typical(dX), typical(dY)};
}

}  // namespace attest::reference
