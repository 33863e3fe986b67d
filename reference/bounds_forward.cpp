// Error bounds of O and LSE: docs/theory/error-bounds.md, section "Forward".
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/bounds.hpp"
#include "reference/group.hpp"
#include "reference/roundoff.hpp"
#include "reference/score_error.hpp"

namespace attest::reference {
namespace {

constexpr std::int64_t kBlockRows = 128;
constexpr double kLargestExponent = 700;  // exp stays finite

// Everything of one row that does not depend on the column of V.
struct Row {
  std::vector<double> P, proved, linear, variance;  // weights of |v-O|, |v-O| and (v-O)^2
  std::vector<double> cast;                         // variance weights of the cast of P
  double visible = 0, records = 0, deepest = 0, coherence = 0, drift = 0;
  double mean_log_error = 0, mean_error = 0, mean_linear = 0, inflation = 1;
  double lse_variance = 0;
  double largest_p = 0, maximum = 0, lse = 0, normalizer = 1;
};

double exp_limited(double x) { return std::exp(std::min(x, kLargestExponent)); }

// Rescales happen where the running maximum rises; tile records are a subset of key records.
double records(const Matrix& S, Eigen::Index r) {
  double best = -std::numeric_limits<double>::infinity();
  int upwards = 0, downwards = 0;
  for (Eigen::Index j = 0; j < S.cols(); ++j) {
    if (S(r, j) > best) best = S(r, j), ++upwards;
  }
  best = -std::numeric_limits<double>::infinity();
  for (Eigen::Index j = S.cols(); j-- > 0;) {
    if (S(r, j) > best) best = S(r, j), ++downwards;
  }
  return std::max(upwards, downwards);
}

struct Workspace {
  SortedGroups groups;
  std::vector<double> spread, total;
};

void log_errors(const Numerics& numerics, const Matrix& S, const ScoreError& error, Eigen::Index r,
                double maximum_magnitude, Row& row, Workspace& work) {
  const double u = numerics.accumulator_roundoff;
  const double exponential = exponential_error(numerics);
  const double rescale = 6 * u * maximum_magnitude + row.records * (exponential + 2 * u);
  double worst = 0;
  for (Eigen::Index j = 0; j < S.cols(); ++j) {
    const auto k = static_cast<std::size_t>(j);
    if (row.P[k] == 0 && !std::isfinite(S(r, j))) continue;
    const double common = 2 * u * (std::abs(S(r, j)) + maximum_magnitude) + exponential + rescale;
    const double linear = common + error.bias(r, j);
    const double eta = common + error.bias(r, j) + error.magnitude(r, j) * error.proved;
    const double deviation = error.magnitude(r, j) * error.deviation;
    const double eps = std::expm1(std::min(eta, kLargestExponent));
    row.mean_log_error += row.P[k] * eta;
    row.mean_error += row.P[k] * eps;
    row.mean_linear += row.P[k] * linear;
    row.proved[k] = row.P[k] * eps;
    row.linear[k] = row.P[k] * linear;
    work.spread[k] = row.P[k] * deviation;
    worst = std::max(worst, kLambda * deviation + linear);
  }
  row.normalizer = exp_limited(row.mean_log_error);
  row.inflation = 1.001 * exp_limited(2 * worst);
}

// Equal scores err together: (sum over a group of w x)^2 <= W sum w x^2 (Cauchy-Schwarz), so a
// group enters through its total weight W only.
void group_variances(const Numerics& numerics, const Matrix& S, Eigen::Index r,
                     double maximum_magnitude, Row& row, Workspace& work) {
  const double tie_width = 0x1p-33 * (1 + maximum_magnitude);
  work.groups.sort(S.row(r).data(), S.cols(), 1);
  work.groups.group_sums(tie_width, work.spread, work.total);
  for (std::size_t k = 0; k < row.P.size(); ++k) {
    row.variance[k] = work.total[k] * work.spread[k];
    row.lse_variance += row.variance[k];
  }
  if (numerics.p_roundoff > 0) {
    const double square = numerics.p_roundoff * numerics.p_roundoff;
    work.groups.group_sums(numerics.p_roundoff, row.P, work.total);
    for (std::size_t k = 0; k < row.P.size(); ++k) row.cast[k] = square * work.total[k] * row.P[k];
  }
  const double width = row.visible * numerics.accumulator_roundoff;
  row.coherence = work.groups.coherence(width, row.P, row.deepest);
  row.drift = drift_of(row.coherence, row.visible, row.deepest);
}

Row analyse(const Numerics& numerics, const Matrix& S, const ScoreError& error, Eigen::Index r,
            Workspace& work) {
  const auto keys = static_cast<std::size_t>(S.cols());
  Row row;
  for (auto* list : {&row.P, &row.proved, &row.linear, &row.variance, &row.cast}) {
    list->assign(keys, 0.0);
  }
  work.spread.assign(keys, 0.0);
  row.maximum = S.row(r).maxCoeff();
  double sum = 0, largest = 0;
  for (Eigen::Index j = 0; j < S.cols(); ++j) {
    if (!std::isfinite(S(r, j))) continue;
    const double p = std::exp(S(r, j) - row.maximum);
    row.P[static_cast<std::size_t>(j)] = p;
    sum += p;
    largest = std::max(largest, std::abs(S(r, j)));
    row.visible += 1;
  }
  for (double& p : row.P) p /= sum;
  row.largest_p = 1 / sum;
  row.lse = row.maximum + std::log(sum);
  constexpr double kUndeclaredSplits = 8;
  // Where exp(0) may differ from 1, tiles that keep the maximum rescale as well.
  const double rescales = numerics.exp_zero_is_one ? records(S, r) : row.visible;
  row.records = std::min(row.visible, rescales) +
                std::max(kUndeclaredSplits, static_cast<double>(numerics.lse_splits));
  row.deepest = summation_depth(numerics, row.visible) + row.records;
  log_errors(numerics, S, error, r, largest, row, work);
  group_variances(numerics, S, r, largest, row, work);
  return row;
}

// The sums over keys that each column of V needs.
struct Columns {
  Vector proved, linear, farthest;  // of |v - O|
  Vector absolute, plain;           // sum P |v|, sum |v|
  Vector deviation_from_mean;       // sum P |v - O|
  Vector variance, cast_variance;   // of squares
};

Columns sum_columns(const Numerics& numerics, const Row& row, const Matrix& V,
                    const Eigen::Ref<const Vector>& O) {
  const Eigen::Index columns = V.cols();
  Columns sums;
  for (auto* vector : {&sums.proved, &sums.linear, &sums.farthest, &sums.absolute, &sums.plain,
                       &sums.deviation_from_mean, &sums.variance, &sums.cast_variance}) {
    *vector = Vector::Zero(columns);
  }
  const bool cast = numerics.p_roundoff > 0;
  const bool after = numerics.row_sum == CastOrder::after;
  Eigen::ArrayXd distance(columns), value(columns);
  for (Eigen::Index j = 0; j < V.rows(); ++j) {
    const auto k = static_cast<std::size_t>(j);
    if (row.proved[k] == 0 && row.P[k] == 0) continue;
    value = V.row(j).transpose().array().abs();
    distance = (V.row(j).transpose() - O).array().abs();
    sums.proved.array() += row.proved[k] * distance;
    sums.linear.array() += row.linear[k] * distance;
    sums.deviation_from_mean.array() += row.P[k] * distance;
    sums.farthest = sums.farthest.array().max(distance);
    sums.absolute.array() += row.P[k] * value;
    sums.plain.array() += value;
    sums.variance.array() += row.variance[k] * distance.square();
    if (cast) sums.cast_variance.array() += row.cast[k] * (after ? distance : value).square();
  }
  return sums;
}

struct Element {
  double proved, probable, sigma;
};

Element bound_element(const Numerics& numerics, const Row& row, const Columns& sums, Eigen::Index c,
                      double O) {
  const double u = numerics.accumulator_roundoff;
  const double magnitude = std::abs(O);
  const double up = numerics.p_roundoff;
  const double accumulation = accumulation_error(numerics, row.deepest);
  const double weights = std::min(row.normalizer * sums.proved(c), sums.farthest(c));
  // Sums of |v| and of |v - O| under the kernel's own weights, which are convex too.
  const double carried =
      std::min(row.normalizer * (sums.absolute(c) + sums.proved(c) + magnitude * row.mean_error),
               magnitude + sums.farthest(c));
  const double spread =
      std::min(row.normalizer * (sums.deviation_from_mean(c) + sums.proved(c)), sums.farthest(c));
  const double cast =
      numerics.row_sum == CastOrder::after ? up / (1 - up) * (spread + weights) : up * carried;
  const double floor =
      flush_unit(numerics) +
      numerics.p_underflow * (numerics.normalize == CastOrder::before ? 1.0 : row.largest_p);
  const double flushed = row.normalizer * sums.plain(c) * floor;
  const double summed = accumulation * (carried * (1 + up) + magnitude + weights);
  // From n u = 1/2 on nothing is proved: gamma(n, u) >= 1.
  const double E = accumulation < 1 ? weights + (cast + flushed + summed) / (1 - accumulation)
                                    : std::numeric_limits<double>::infinity();
  const double out = numerics.output_roundoff + 3 * u;
  Element element{};
  element.proved = E + out * (magnitude + E) + numerics.output_underflow;
  const double walk = accumulation_deviation(numerics, row.deepest);
  const double variance =
      sums.variance(c) + sums.cast_variance(c) +
      walk * walk * (sums.absolute(c) * sums.absolute(c) + magnitude * magnitude);
  const double linear = sums.linear(c) + flushed + row.drift * u * (sums.absolute(c) + magnitude) +
                        accumulation_bias(numerics, row.deepest) * (sums.absolute(c) + magnitude);
  const double Ep = row.inflation * (kLambda * std::sqrt(variance) + linear);
  element.probable =
      std::min(element.proved, Ep + out * (magnitude + Ep) + numerics.output_underflow);
  // The aggregate adds up many elements, and coherent additions may move them all alike.
  const double common = row.coherence * u * (sums.absolute(c) + magnitude);
  element.sigma =
      std::sqrt(variance) + linear + common + out * magnitude + numerics.output_underflow;
  return element;
}

Element bound_lse(const Numerics& numerics, LseBase base, const Row& row) {
  const double u = numerics.accumulator_roundoff;
  const double accumulation = accumulation_error(numerics, row.deepest);
  const bool after = numerics.row_sum == CastOrder::after;
  const double rounding = u * (4 * std::abs(row.maximum) + 4 * std::abs(row.lse) +
                               6 * std::abs(std::log(row.largest_p)) + 4);
  Element element{};
  element.proved = std::log1p(row.mean_error) - std::log1p(-std::min(1.0, accumulation)) -
                   (after ? std::log1p(-numerics.p_roundoff) : 0.0) + rounding +
                   row.visible * flush_unit(numerics);
  double variance = row.lse_variance + std::pow(accumulation_deviation(numerics, row.deepest), 2);
  if (after) {
    for (const double cast : row.cast) variance += cast;
  }
  const double linear = row.mean_linear + row.drift * u + accumulation_bias(numerics, row.deepest);
  const double Ep = row.inflation * (kLambda * std::sqrt(variance) + linear);
  element.probable = std::min(element.proved, Ep + rounding);
  element.sigma = std::sqrt(variance) + linear + row.coherence * u + rounding;
  if (base == LseBase::two) {
    const double conversion = 3 * u * std::abs(row.lse) * std::numbers::log2e;
    for (double* bound : {&element.proved, &element.probable, &element.sigma}) {
      *bound = *bound * std::numbers::log2e + conversion;
    }
  }
  return element;
}

}  // namespace

ForwardBounds forward_bounds(const Problem& problem, const Conventions& conventions,
                             const Numerics& numerics, const TensorView& Q, const TensorView& K,
                             const TensorView& V, const Forward& exact) {
  const auto like = [](const char* name, const std::vector<Axis>& axes) {
    const Tensor zeros(name, DType::f64, axes);
    return ErrorBound{zeros, zeros, zeros};
  };
  ForwardBounds bounds{like("bound of O", problem.o_axes()),
                       like("bound of LSE", problem.lse_axes())};
  for (const Group& group : groups_of(problem)) {
    const Matrix keys = key_rows(K, group), values = key_rows(V, group);
    const std::int64_t blocks = (group.rows() + kBlockRows - 1) / kBlockRows;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t first = b * kBlockRows;
      const std::int64_t count = std::min(kBlockRows, group.rows() - first);
      const Matrix queries = stacked_rows(Q, group, first, count);
      const Matrix O = stacked_rows(exact.O.view(), group, first, count);
      const Scores block = scores(problem, group, first, queries, keys);
      const ScoreError error = score_error(problem, numerics, group, first, queries, keys, block);
      Workspace work;
      for (std::int64_t r = 0; r < count; ++r) {
        if (!(block.S.cols() > 0) || !std::isfinite(block.S.row(r).maxCoeff())) continue;
        const Row row = analyse(numerics, block.S, error, r, work);
        const Columns sums = sum_columns(numerics, row, values, O.row(r).transpose());
        const std::int64_t batch = group.sequence.tensor_batch;
        const std::int64_t query = group.sequence.q_begin + group.query(first + r);
        const std::int64_t head = group.query_head(first + r);
        for (Eigen::Index c = 0; c < values.cols(); ++c) {
          const Element element = bound_element(numerics, row, sums, c, O(r, c));
          bounds.O.deterministic.set(element.proved, batch, query, head, c);
          bounds.O.probabilistic.set(element.probable, batch, query, head, c);
          bounds.O.sigma.set(element.sigma, batch, query, head, c);
        }
        const Element element = bound_lse(numerics, conventions.lse_base, row);
        bounds.LSE.deterministic.set(element.proved, batch, head, query);
        bounds.LSE.probabilistic.set(element.probable, batch, head, query);
        bounds.LSE.sigma.set(element.sigma, batch, head, query);
      }
    }
  }
  return bounds;
}

}  // namespace attest::reference
