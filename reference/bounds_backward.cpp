// Error bounds of dQ, dK and dV: docs/theory/error-bounds.md, section "Backward".
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/bounds.hpp"
#include "reference/gradient_sums.hpp"
#include "reference/group.hpp"
#include "reference/roundoff.hpp"
#include "reference/score_error.hpp"

namespace attest::reference {
namespace {

// What is known of one stacked row: measured errors of the stored LSE and of delta.
struct RowErrors {
  Vector lse, delta;                                   // exact values
  Vector lse_error;                                    // EL
  Vector delta_proved, delta_linear, delta_deviation;  // ED and its parts
};

RowErrors row_errors(const Problem& problem, const Numerics& numerics, LseBase base,
                     const Group& group, const Matrix& dO, const Vector& dLSE, const Matrix& O,
                     const Stored& stored, const Vector& exact_lse) {
  const double u = numerics.accumulator_roundoff;
  const Matrix stored_O = stacked_rows(stored.O, group, 0, group.rows());
  const Vector stored_lse = stacked_scalars(stored.LSE, group);
  const double terms = static_cast<double>(problem.head_dim_v) + 2;
  const Eigen::Index rows = dO.rows();
  RowErrors errors{exact_lse, Vector(rows), Vector(rows), Vector(rows), Vector(rows), Vector(rows)};
  for (Eigen::Index r = 0; r < rows; ++r) {
    const double magnitude =
        dO.row(r).cwiseAbs().dot(stored_O.row(r).cwiseAbs()) + std::abs(dLSE(r));
    const double inherited = std::abs(dO.row(r).dot(stored_O.row(r) - O.row(r)));
    errors.delta(r) = dO.row(r).dot(O.row(r)) - dLSE(r);
    const double linear = inherited + 2 * u * std::abs(errors.delta(r));
    errors.delta_proved(r) =
        linear + std::max(gamma(terms, u), accumulation_error(numerics, terms)) * magnitude;
    errors.delta_linear(r) = linear + accumulation_bias(numerics, terms) * magnitude;
    errors.delta_deviation(r) = accumulation_deviation(numerics, terms) * magnitude;
    const double natural = base == LseBase::e ? stored_lse(r) : stored_lse(r) * std::numbers::ln2;
    const double roundings = base == LseBase::e ? 3 : 5;  // two more for the change of base
    errors.lse_error(r) = std::isfinite(exact_lse(r)) ? std::abs(natural - exact_lse(r)) +
                                                            roundings * u * std::abs(exact_lse(r))
                                                      : 0.0;
  }
  return errors;
}

// Per entry (row, key), and everything that sums over rows or keys need.
struct Entries {
  Matrix P, dS;               // exact
  Matrix visible;             // 1 where the key is visible, else 0
  Matrix slope;               // softcap's derivative or empty
  WeightedErrors dV, dK, dQ;  // weights of |dO|, |Q|, |K|
  Matrix floor;               // what flushing leaves of dS
  double worst = 0;
};

struct Inputs {
  const Problem& problem;
  const Numerics& numerics;
  const Group& group;
  Matrix Q, K, V, dO;
};

Entries entry_errors(const Inputs& in, const RowErrors& row) {
  const Numerics& numerics = in.numerics;
  const double u = numerics.accumulator_roundoff, up = numerics.p_roundoff;
  const double exponential = exponential_error(numerics), flush = flush_unit(numerics);
  const double terms = static_cast<double>(in.problem.head_dim_v) + 2;
  const double product = accumulation_error(numerics, terms);
  const Scores exact = scores(in.problem, in.group, 0, in.Q, in.K);
  const ScoreError error = score_error(in.problem, numerics, in.group, 0, in.Q, in.K, exact);
  const Matrix dP = in.dO * in.V.transpose();
  const Matrix dP_magnitude = in.dO.cwiseAbs() * in.V.cwiseAbs().transpose();
  const Eigen::Index rows = dP.rows(), keys = dP.cols();
  Entries e;
  for (auto* matrix : {&e.P, &e.dS, &e.visible, &e.floor}) *matrix = Matrix::Zero(rows, keys);
  for (auto* errors : {&e.dV, &e.dK, &e.dQ}) errors->resize(rows, keys);
  e.slope = exact.slope;
  const double softcap_error = in.problem.softcap > 0 ? 2 * exponential + 3 * u : 0.0;
  for (Eigen::Index i = 0; i < rows; ++i) {
    const double EL = row.lse_error(i), ED = row.delta_proved(i);
    for (Eigen::Index j = 0; j < keys; ++j) {
      const double s = exact.S(i, j);
      if (!std::isfinite(s)) continue;
      const double P = std::exp(s - row.lse(i));
      const double G = std::abs(dP(i, j) - row.delta(i));
      const double raw = P * (dP(i, j) - row.delta(i));
      const double magnitude = dP_magnitude(i, j) + std::abs(row.delta(i));
      const double argument =
          u * (3 * std::abs(s) + 2 * std::abs(row.lse(i))) + exponential + 2 * u + error.bias(i, j);
      const double th = error.magnitude(i, j) * error.proved + argument;
      const double tv = error.magnitude(i, j) * error.deviation;
      const double pi = product * magnitude;
      const double pv = accumulation_deviation(numerics, terms) * magnitude;
      const double pl = accumulation_bias(numerics, terms) * magnitude;
      const double full = std::expm1(std::min(th + EL, 700.0));
      // softcap: dS is multiplied by 1 - t^2, whose error follows that of the score.
      double slope = 1, slope_proved = 0, slope_linear = 0, slope_deviation = 0;
      if (e.slope.size() > 0) {
        slope = e.slope(i, j);
        const double t = 2 * std::sqrt(1 - slope) / in.problem.softcap;
        slope_linear = softcap_error + t * error.bias(i, j);
        slope_proved =
            softcap_error + t * (error.magnitude(i, j) * error.proved + error.bias(i, j));
        slope_deviation = t * tv;
      }
      const auto with_slope = [&](double r) {
        return (slope + slope_proved) * r + slope_proved * std::abs(raw);
      };
      e.P(i, j) = P;
      e.visible(i, j) = 1;
      e.dS(i, j) = raw * slope;
      const double dS = std::abs(e.dS(i, j));
      e.worst = std::max(e.worst, kLambda * tv + argument + EL);

      e.dV.proved(i, j) = P * (full + up * (1 + full));
      e.dV.linear(i, j) = P * argument;
      e.dV.deviation(i, j) = P * (tv + EL);

      double r = P * (G * full + (pi + ED) * (1 + full)) + 3 * u * (std::abs(raw) + P * (pi + ED));
      r = with_slope(r);
      r += up * (dS + r);
      e.floor(i, j) = numerics.p_underflow + 2 * flush + flush * (G + pi + ED);
      e.dK.proved(i, j) = r;
      e.dK.linear(i, j) = (slope + slope_proved) * P * (G * argument + pl + 2 * u * G) +
                          slope_linear * std::abs(raw);
      const double spread = G * G * tv * tv + pv * pv;
      const double row_spread =
          G * G * EL * EL + std::pow(row.delta_deviation(i), 2) + std::pow(row.delta_linear(i), 2);
      const double slope_spread = std::pow(slope_deviation * G, 2);
      e.dK.deviation(i, j) =
          P * std::sqrt((slope + slope_proved) * (slope + slope_proved) * (spread + row_spread) +
                        slope_spread);

      // dQ: errors common to the row stay signed and are added per column.
      const double own = std::expm1(std::min(th, 700.0)) * std::exp(std::min(EL, 700.0));
      double q = P * (G * own + pi * (1 + own) + ED * (own + 2 * EL)) +
                 3 * u * (std::abs(raw) + P * (pi + ED));
      q = with_slope(q) + slope_proved * (P * ED + std::expm1(std::min(EL, 700.0)) * std::abs(raw));
      q += up * (dS * (1 + 2 * EL) + q + P * ED);
      e.dQ.proved(i, j) = q;
      e.dQ.linear(i, j) =
          (slope + slope_proved) * P * (G * argument + pl + 2 * u * (G + ED) + up * ED) +
          slope_linear * std::abs(raw);
      e.dQ.deviation(i, j) =
          P * std::sqrt((slope + slope_proved) * (slope + slope_proved) * spread + slope_spread);
    }
  }
  return e;
}

// The common end of the three gradients: sums become bounds of one output element.
struct Finish {
  const Numerics& numerics;
  double scale;    // |softmax_scale| for dQ and dK, 1 for dV
  double output;   // relative error of the last operations
  double partial;  // roundoff of partial sums kept in low precision
  double inflation;

  void operator()(const GradientSums& sums, const Matrix& exact, const Matrix& extra_proved,
                  const Matrix& extra_linear, const Matrix& extra_variance, Matrix& proved,
                  Matrix& probable, Matrix& sigma) const {
    const double u = numerics.accumulator_roundoff;
    constexpr double kMerges = 8;  // partial sums of tiles, splits and heads
    proved = probable = sigma = Matrix::Zero(exact.rows(), exact.cols());
    for (Eigen::Index r = 0; r < exact.rows(); ++r) {
      if (sums.terms(r) == 0) continue;
      const double depth = summation_depth(numerics, sums.terms(r)) + kMerges;
      const double accumulation = accumulation_error(numerics, depth) + partial;
      const double walk = accumulation_deviation(numerics, depth);
      const double drift = drift_of(sums.coherence(r), sums.terms(r), depth);
      const double bias = accumulation_bias(numerics, depth) + partial;
      for (Eigen::Index c = 0; c < exact.cols(); ++c) {
        const double all = sums.absolute(r, c);
        const double errors = sums.proved(r, c) + extra_proved(r, c);
        const double E = scale * (errors + sums.floor(r, c) + accumulation * (all + errors));
        const double magnitude = std::abs(exact(r, c));
        proved(r, c) = E + output * (magnitude + E) + numerics.output_underflow;
        const double variance =
            sums.variance(r, c) + extra_variance(r, c) + walk * walk * all * all;
        const double linear =
            sums.linear(r, c) + extra_linear(r, c) + sums.floor(r, c) + (bias + drift * u) * all;
        const double Ep = scale * inflation * (kLambda * std::sqrt(variance) + linear);
        probable(r, c) =
            std::min(proved(r, c), Ep + output * (magnitude + Ep) + numerics.output_underflow);
        sigma(r, c) =
            scale * (std::sqrt(variance) + linear) + output * magnitude + numerics.output_underflow;
      }
    }
  }
};

struct GroupBounds {
  Matrix proved, probable, sigma;
};

struct GroupResult {
  GroupBounds dQ, dK, dV;
};

GroupResult bound_group(const Inputs& in, const RowErrors& row) {
  const Numerics& numerics = in.numerics;
  const double u = numerics.accumulator_roundoff;
  const double scale = std::abs(in.problem.scale());
  const Entries e = entry_errors(in, row);
  const Matrix magnitude = e.dS.cwiseAbs();
  const Matrix p_floor = (numerics.p_underflow + flush_unit(numerics)) * e.visible;
  const double inflation = 1.001 * std::exp(std::min(2 * e.worst, 700.0));
  const double gradient_output = numerics.output_roundoff + 3 * u + numerics.scaled_q_roundoff;
  const auto none = [](const Matrix& like) {
    return Matrix(Matrix::Zero(like.rows(), like.cols()));
  };
  GroupResult result;

  const GradientSums v = sum_over_rows(numerics, {e.P, p_floor, e.visible, e.dV}, in.dO);
  const Matrix dV = e.P.transpose() * in.dO, no_v = none(dV);
  const double partial = numerics.gqa_partial_roundoff;
  Finish{numerics, 1, numerics.output_roundoff + 2 * u, partial, inflation}(
      v, dV, no_v, no_v, no_v, result.dV.proved, result.dV.probable, result.dV.sigma);

  const GradientSums k = sum_over_rows(numerics, {magnitude, e.floor, e.visible, e.dK}, in.Q);
  const Matrix dK = in.problem.scale() * e.dS.transpose() * in.Q, no_k = none(dK);
  Finish{numerics, scale, gradient_output, partial, inflation}(
      k, dK, no_k, no_k, no_k, result.dK.proved, result.dK.probable, result.dK.sigma);

  const GradientSums q = sum_over_keys(numerics, {magnitude, e.floor, e.visible, e.dQ}, in.K);
  const Matrix unscaled = e.dS * in.K;
  const Matrix weighted =
      e.slope.size() > 0 ? Matrix(e.P.cwiseProduct(e.slope) * in.K) : Matrix(e.P * in.K);
  Matrix proved = none(unscaled), linear = none(unscaled), variance = none(unscaled);
  for (Eigen::Index i = 0; i < unscaled.rows(); ++i) {
    const double EL = row.lse_error(i), common = std::expm1(std::min(EL, 700.0));
    for (Eigen::Index c = 0; c < unscaled.cols(); ++c) {
      const double pk = std::abs(weighted(i, c)), dq = std::abs(unscaled(i, c));
      proved(i, c) = row.delta_proved(i) * pk * (1 + 2 * EL) + common * dq;
      linear(i, c) = row.delta_linear(i) * pk + EL * dq;
      variance(i, c) = std::pow(row.delta_deviation(i) * pk, 2);
    }
  }
  const double dq_partial =
      numerics.dq_roundoff > 0 ? gamma(static_cast<double>(in.K.rows()), numerics.dq_roundoff) : 0;
  Finish{numerics, scale, gradient_output, dq_partial, inflation}(
      q, in.problem.scale() * unscaled, proved, linear, variance, result.dQ.proved,
      result.dQ.probable, result.dQ.sigma);
  return result;
}

}  // namespace

BackwardBounds backward_bounds(const Problem& problem, const Conventions& conventions,
                               const Numerics& numerics, const TensorView& Q, const TensorView& K,
                               const TensorView& V, const Cotangents& cotangents,
                               const Stored& stored, const Forward& exact_forward) {
  const auto like = [](const char* name, const std::vector<Axis>& axes) {
    const Tensor zeros(name, DType::f64, axes);
    return ErrorBound{zeros, zeros, zeros};
  };
  BackwardBounds bounds{like("bound of dQ", problem.q_axes()),
                        like("bound of dK", problem.k_axes()),
                        like("bound of dV", problem.v_axes())};
  const std::vector<Group> groups = groups_of(problem);
#pragma omp parallel for schedule(dynamic)
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const Inputs in{problem,
                    numerics,
                    group,
                    stacked_rows(Q, group, 0, group.rows()),
                    key_rows(K, group),
                    key_rows(V, group),
                    stacked_rows(cotangents.dO, group, 0, group.rows())};
    const Vector dLSE = cotangents.dLSE != nullptr ? stacked_scalars(*cotangents.dLSE, group)
                                                   : Vector(Vector::Zero(group.rows()));
    const RowErrors row = row_errors(problem, numerics, conventions.lse_base, group, in.dO, dLSE,
                                     stacked_rows(exact_forward.O.view(), group, 0, group.rows()),
                                     stored, stacked_scalars(exact_forward.LSE.view(), group));
    const GroupResult result = bound_group(in, row);
    scatter_rows(result.dQ.proved, group, 0, bounds.dQ.deterministic);
    scatter_rows(result.dQ.probable, group, 0, bounds.dQ.probabilistic);
    scatter_rows(result.dQ.sigma, group, 0, bounds.dQ.sigma);
    scatter_key_rows(result.dK.proved, group, bounds.dK.deterministic);
    scatter_key_rows(result.dK.probable, group, bounds.dK.probabilistic);
    scatter_key_rows(result.dK.sigma, group, bounds.dK.sigma);
    scatter_key_rows(result.dV.proved, group, bounds.dV.deterministic);
    scatter_key_rows(result.dV.probable, group, bounds.dV.probabilistic);
    scatter_key_rows(result.dV.sigma, group, bounds.dV.sigma);
  }
  return bounds;
}

}  // namespace attest::reference
