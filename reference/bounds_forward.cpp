// Error bounds of O and LSE: docs/theory/error-bounds.md, section "Forward".
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/bounds.hpp"
#include "reference/coherent_groups.hpp"
#include "reference/distance_sums.hpp"
#include "reference/group.hpp"
#include "reference/roundoff.hpp"
#include "reference/score_error.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

constexpr std::int64_t kBlockRows = 32;   // a block's weights stay near the cache
constexpr double kLargestExponent = 700;  // exp stays finite
constexpr double kTieWidth = 0x1p-33;     // of scores, relative to 1 + their largest magnitude

// How far a kernel may let its maximum stay behind undeclared: a factor of 2^8 in P.
constexpr double kStaleMaximum = 8 * std::numbers::ln2;

// Everything of one row that does not depend on the column of V.
struct Row {
  std::int64_t begin = 0, end = 0;  // all visible keys lie within
  double visible = 0, records = 0, deepest = 0, coherence = 0, drift = 0;
  bool saturated = false;  // an error of a score so large that e^error means nothing
  double lse_growth = 0;   // log of the sum of P e^eta
  double mean_log_error = 0, mean_error = 0, mean_linear = 0, largest_error = 0, inflation = 1;
  double typical_growth = 1;
  double lse_variance = 0, cast_variance = 0;
  double largest_p = 0, maximum = 0, lse = 0, normalizer = 1;
  double stale = 0;                    // how far the maximum may stay behind
  double split = 0, split_common = 0;  // log-errors of merging splits through LSE
};

// Weights of the keys in the sums over V, for a block of rows.
struct Weights {
  Matrix P, present;        // the exact weights; 1 where they are not 0
  Matrix proved, linear;    // of |v - O|
  Matrix variance;          // of (v - O)^2
  Matrix cast;              // variance weights of the cast of P: of v^2, or of (v - O)^2
  bool all_present = true;  // every row weighs every key

  Weights(const Numerics& numerics, Eigen::Index rows, Eigen::Index keys) {
    for (auto* matrix : {&P, &present, &proved, &linear, &variance}) {
      *matrix = Matrix::Zero(rows, keys);
    }
    if (numerics.p_roundoff > 0) cast = Matrix::Zero(rows, keys);
  }
};

double exp_limited(double x) { return std::exp(std::min(x, kLargestExponent)); }

// Rescales happen where the running maximum rises; tile records are a subset of key records.
double records(const double* S, std::int64_t begin, std::int64_t end) {
  double best = -std::numeric_limits<double>::infinity();
  int upwards = 0, downwards = 0;
  for (std::int64_t j = begin; j < end; ++j) {
    if (S[j] > best) best = S[j], ++upwards;
  }
  best = -std::numeric_limits<double>::infinity();
  for (std::int64_t j = end; j-- > begin;) {
    if (S[j] > best) best = S[j], ++downwards;
  }
  return std::max(upwards, downwards);
}

struct Workspace {
  CoherentGroups groups;
  std::vector<double> spread, total;
  std::vector<double> raised;  // log P + eta
};

// log of the sum of exponentials, over all entries.
double log_sum_exp(const std::vector<double>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double entry : x) sum += std::exp(entry - largest);
  return largest + std::log(sum);
}

// One row of a block under analysis.
struct RowInput {
  const Numerics& numerics;
  const Matrix& S;
  const ScoreError& error;
  Eigen::Index r;
};

// Fills P and present; maximum, LSE and the largest |score|, which is returned.
double softmax_row(const RowInput& in, Row& row, Weights& weights) {
  const double* S = in.S.row(in.r).data();
  const std::int64_t keys = in.S.cols();
  while (!std::isfinite(S[row.begin])) ++row.begin;
  row.end = keys;
  while (!std::isfinite(S[row.end - 1])) --row.end;
  row.maximum = in.S.row(in.r).maxCoeff();
  double* P = weights.P.row(in.r).data();
  double* present = weights.present.row(in.r).data();
  double sum = 0, largest = 0, lowest = row.maximum, present_keys = 0;
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    if (!std::isfinite(S[j])) continue;
    P[j] = std::exp(S[j] - row.maximum);
    present[j] = P[j] > 0 ? 1 : 0;
    sum += P[j];
    present_keys += present[j];
    largest = std::max(largest, std::abs(S[j]));
    lowest = std::min(lowest, S[j]);
    row.visible += 1;
  }
  for (std::int64_t j = row.begin; j < row.end; ++j) P[j] /= sum;
  if (present_keys < static_cast<double>(keys)) weights.all_present = false;
  row.largest_p = 1 / sum;
  row.lse = row.maximum + std::log(sum);
  row.stale = std::min(kStaleMaximum, row.maximum - lowest);
  return largest;
}

// Merging splits through LSE (section "Splits merged through LSE"): what a key's weight errs
// against other splits' keys, and what the row errs as a whole because such weights do not sum to
// one.
void split_errors(const Numerics& numerics, double maximum_magnitude, Row& row) {
  if (numerics.lse_splits == 0) return;
  const double u = numerics.accumulator_roundoff, exponential = exponential_error(numerics);
  const double logarithm = std::log(row.visible) + row.stale;  // of a split's sum
  const double lse = maximum_magnitude + logarithm;
  const auto merges = static_cast<double>(numerics.lse_splits);
  row.split = u * (4 * maximum_magnitude + 4 * lse + 6 * logarithm + 4) +
              merges * (2 * u * lse + exponential + 2 * u);
  row.split_common = merges * (3 * u * lse + 6 * u * logarithm + exponential + 8 * u);
}

void log_errors(const RowInput& in, double maximum_magnitude, Row& row, Weights& weights,
                Workspace& work) {
  const double u = in.numerics.accumulator_roundoff;
  const double exponential = exponential_error(in.numerics);
  const double rescale =
      6 * u * maximum_magnitude + row.records * (exponential + 2 * u) + row.split;
  const double* S = in.S.row(in.r).data();
  const double* P = weights.P.row(in.r).data();
  const double* magnitude = in.error.magnitude.row(in.r).data();
  const double* bias = in.error.bias.row(in.r).data();
  double* proved = weights.proved.row(in.r).data();
  double* linear = weights.linear.row(in.r).data();
  double worst = 0, typical = 0;
  work.spread.assign(static_cast<std::size_t>(in.S.cols()), 0.0);
  work.raised.clear();
  double largest = 0;
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    if (!std::isfinite(S[j])) continue;
    const double common =
        2 * u * (std::abs(S[j]) + maximum_magnitude) + exponential + rescale + bias[j];
    const double eta = common + magnitude[j] * in.error.proved;
    const double deviation = magnitude[j] * in.error.deviation;
    const double eps = growth(eta, kLargestExponent);
    work.raised.push_back(S[j] - row.lse + eta);
    largest = std::max(largest, eta);
    proved[j] = P[j] * eps;
    linear[j] = P[j] * common;
    work.spread[static_cast<std::size_t>(j)] = P[j] * deviation;
    row.mean_log_error += P[j] * eta;
    row.mean_error += proved[j];
    row.mean_linear += linear[j];
    row.largest_error = std::max(row.largest_error, eps);
    worst = std::max(worst, kLambda * deviation + common);
    typical = std::max(typical, deviation * deviation + common);
  }
  constexpr double kLinear = 0x1p-10;  // below it log1p loses nothing, and nothing underflows
  row.lse_growth = largest < kLinear ? std::log1p(row.mean_error) : log_sum_exp(work.raised);
  // A weight that underflows here is below e^-700, with its error below e^-100 until then.
  constexpr double kSaturated = 600;
  row.saturated = largest >= kSaturated;
  if (row.saturated) {
    for (std::int64_t j = row.begin; j < row.end; ++j) {
      weights.present(in.r, j) = std::isfinite(S[j]) ? 1 : 0;
    }
  }
  row.normalizer = exp_limited(row.mean_log_error);
  row.inflation = 1.001 * exp_limited(2 * worst);
  row.typical_growth = exp_limited(2 * typical);
}

// Equal scores err together: (sum over a group of w x)^2 <= W sum w x^2 (Cauchy-Schwarz), so a
// group enters through its total weight W only.
void group_variances(const RowInput& in, double maximum_magnitude, Row& row, Weights& weights,
                     Workspace& work) {
  const Numerics& numerics = in.numerics;
  const double* P = weights.P.row(in.r).data();
  double* variance = weights.variance.row(in.r).data();
  work.groups.sort(P, in.S.cols());  // log P differs from the score by a constant
  work.groups.group_sums(kTieWidth * (1 + maximum_magnitude), work.spread.data(), work.total);
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    const auto k = static_cast<std::size_t>(j);
    variance[j] = work.total[k] * work.spread[k];
    row.lse_variance += variance[j];
  }
  if (numerics.p_roundoff > 0) {
    const double square = numerics.p_roundoff * numerics.p_roundoff;
    double* cast = weights.cast.row(in.r).data();
    work.groups.group_sums(numerics.p_roundoff, P, work.total);
    for (std::int64_t j = row.begin; j < row.end; ++j) {
      cast[j] = square * work.total[static_cast<std::size_t>(j)] * P[j];
      row.cast_variance += cast[j];
    }
  }
  const double width = row.visible * numerics.accumulator_roundoff;
  row.coherence = work.groups.coherence(width, P, row.deepest);
  row.drift = drift_of(row.coherence, row.visible, row.deepest);
}

Row analyse(const RowInput& in, Weights& weights, Workspace& work) {
  Row row;
  const double largest = softmax_row(in, row, weights);
  constexpr double kUndeclaredSplits = 8;
  // Where exp(0) may differ from 1, tiles that keep the maximum rescale as well.
  const double rescales = in.numerics.exp_zero_is_one
                              ? records(in.S.row(in.r).data(), row.begin, row.end)
                              : row.visible;
  row.records = std::min(row.visible, rescales) +
                std::max(kUndeclaredSplits, static_cast<double>(in.numerics.lse_splits));
  row.deepest = summation_depth(in.numerics, row.visible) + row.records;
  split_errors(in.numerics, largest, row);
  log_errors(in, largest, row, weights, work);
  group_variances(in, largest, row, weights, work);
  return row;
}

// V and what is summed with it, once per sequence and K/V head.
struct Values {
  Matrix V;                  // padded for distance_sums
  Matrix magnitude, square;  // |v|, v^2
  Matrix total;              // (1, columns): sum of |v| over all keys

  explicit Values(const Matrix& values)
      : V(padded_columns(values)),
        magnitude(V.cwiseAbs()),
        square(V.cwiseAbs2()),
        total(magnitude.colwise().sum()) {}
};

// The sums over keys that each column of V needs, for one row.
struct Columns {
  DistanceSums distance;       // of |v - O| and its square
  Vector farthest;             // max |v - O|, +inf where nothing would come of it
  Vector deviation_from_mean;  // sum P |v - O|
  Vector absolute, plain;      // sum P |v|, sum |v|
  Vector cast_variance;
};

// Those of the sums that are products of matrices, for a block of rows.
struct BlockSums {
  Matrix absolute, plain, cast;

  BlockSums(const Numerics& numerics, const Weights& weights, const Values& values)
      : absolute(product(weights.P, values.magnitude)) {
    if (weights.all_present) {
      plain = values.total.replicate(absolute.rows(), 1);
    } else {
      plain = product(weights.present, values.magnitude);
    }
    if (numerics.p_roundoff > 0 && numerics.row_sum == CastOrder::before) {
      cast = product(weights.cast, values.square);
    }
  }
};

Columns sum_columns(const Numerics& numerics, const Row& row, Eigen::Index r,
                    const Weights& weights, const BlockSums& block, const Values& values,
                    const Vector& O) {
  Columns sums;
  const double* P = weights.P.row(r).data();
  distance_sums(
      values.V, O,
      {weights.proved.row(r).data(), weights.linear.row(r).data(), weights.variance.row(r).data()},
      row.begin, row.end, sums.distance);
  sums.absolute = block.absolute.row(r);
  sums.plain = block.plain.row(r);
  sums.cast_variance = sums.deviation_from_mean = Vector::Zero(O.size());
  if (numerics.row_sum == CastOrder::after) {
    const double* cast = numerics.p_roundoff > 0 ? weights.cast.row(r).data() : P;
    DistanceSums of_weights;
    distance_sums(values.V, O, {P, P, cast}, row.begin, row.end, of_weights);
    sums.deviation_from_mean = of_weights.first;
    if (numerics.p_roundoff > 0) sums.cast_variance = of_weights.square;
  } else if (numerics.p_roundoff > 0) {
    sums.cast_variance = block.cast.row(r);
  }
  // The caps by the farthest value gain at most the factor 1 + 3 largest_error.
  constexpr double kSmallError = 0x1p-7;
  const bool capped = row.largest_error > kSmallError || numerics.row_sum == CastOrder::after;
  if (capped) {
    const double* keys = row.saturated ? weights.present.row(r).data() : P;
    sums.farthest = farthest(values.V, O, keys, row.begin, row.end);
  } else {
    sums.farthest = Vector::Constant(O.size(), std::numeric_limits<double>::infinity());
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
  // What e^errors prove, or that O stays among the values.
  const auto convex = [&](double first_order, double cap) {
    return row.saturated ? cap : std::min(row.normalizer * first_order, cap);
  };
  const double weights = convex(sums.distance.first(c), sums.farthest(c));
  // Sums of |v| and of |v - O| under the kernel's own weights, which are convex too.
  const double carried =
      convex(sums.absolute(c) + sums.distance.first(c) + magnitude * row.mean_error,
             magnitude + sums.farthest(c));
  const double spread =
      convex(sums.deviation_from_mean(c) + sums.distance.first(c), sums.farthest(c));
  const double cast =
      numerics.row_sum == CastOrder::after ? up / (1 - up) * (spread + weights) : up * carried;
  const double floor =
      flush_unit(numerics) * (1 + static_cast<double>(numerics.lse_splits)) +
      numerics.p_underflow * (numerics.normalize == CastOrder::before ? 1.0 : row.largest_p);
  // The kernel's own largest weight is 1 before it is divided by a sum of at least 1/2.
  const double most = 2 * (flush_unit(numerics) * (1 + static_cast<double>(numerics.lse_splits)) +
                           numerics.p_underflow);
  const double flushed = sums.plain(c) * std::min(row.normalizer * floor, std::max(floor, most));
  const double summed = accumulation * (carried * (1 + up) + magnitude + weights);
  // From n u = 1/2 on nothing is proved: gamma(n, u) >= 1.
  const double parts = accumulation < 1 ? weights + (cast + flushed + summed) / (1 - accumulation)
                                        : std::numeric_limits<double>::infinity();
  const double merged =
      numerics.lse_splits > 0 ? std::expm1(row.split_common) * (magnitude + parts) : 0.0;
  const double E = parts + merged;
  const double out = numerics.output_roundoff + 3 * u;
  Element element{};
  element.proved = E + out * (magnitude + E) + numerics.output_underflow;
  const double walk = accumulation_deviation(numerics, row.deepest);
  const double variance =
      sums.distance.square(c) + sums.cast_variance(c) +
      walk * walk * (sums.absolute(c) * sums.absolute(c) + magnitude * magnitude);
  const double linear = sums.distance.second(c) + flushed + row.split_common * magnitude +
                        row.drift * u * (sums.absolute(c) + magnitude) +
                        accumulation_bias(numerics, row.deepest) * (sums.absolute(c) + magnitude);
  const double Ep =
      row.saturated ? element.proved : row.inflation * (kLambda * std::sqrt(variance) + linear);
  element.probable =
      std::min(element.proved, Ep + out * (magnitude + Ep) + numerics.output_underflow);
  // The aggregate adds up many elements, and coherent additions may move them all alike.
  const double common = row.coherence * u * (sums.absolute(c) + magnitude);
  // Large errors of scores are beyond first order, but O stays among the values.
  const double first_order = std::sqrt(variance) + linear;
  const double typical =
      std::min(row.typical_growth * first_order, std::max(first_order, sums.farthest(c)));
  element.sigma = typical + common + out * (magnitude + typical) + numerics.output_underflow;
  return element;
}

Element bound_lse(const Numerics& numerics, LseBase base, const Row& row) {
  const double u = numerics.accumulator_roundoff;
  const double accumulation = accumulation_error(numerics, row.deepest);
  const bool after = numerics.row_sum == CastOrder::after;
  const double rounding = u * (4 * std::abs(row.maximum) + 4 * std::abs(row.lse) +
                               6 * std::abs(std::log(row.largest_p)) + 10 * row.stale + 4);
  Element element{};
  element.proved = row.lse_growth - std::log1p(-std::min(1.0, accumulation)) -
                   (after ? std::log1p(-numerics.p_roundoff) : 0.0) + rounding + row.split_common +
                   row.visible * flush_unit(numerics);
  double variance = row.lse_variance + std::pow(accumulation_deviation(numerics, row.deepest), 2);
  if (after) variance += row.cast_variance;
  const double linear =
      row.mean_linear + row.split_common + row.drift * u + accumulation_bias(numerics, row.deepest);
  const double Ep =
      row.saturated ? element.proved : row.inflation * (kLambda * std::sqrt(variance) + linear);
  element.probable = std::min(element.proved, Ep + rounding);
  element.sigma =
      row.typical_growth * (std::sqrt(variance) + linear) + row.coherence * u + rounding;
  if (base == LseBase::two) {
    const double conversion = 3 * u * std::abs(row.lse) * std::numbers::log2e;
    for (double* bound : {&element.proved, &element.probable, &element.sigma}) {
      *bound = *bound * std::numbers::log2e + conversion;
    }
  }
  return element;
}

struct Block {
  const Problem& problem;
  const Conventions& conventions;
  const Numerics& numerics;
  const Group& group;
  std::int64_t first;
};

void bound_block(const Block& block, const Matrix& Q, const Matrix& O, const Matrix& K,
                 const Values& values, ForwardBounds& bounds) {
  const auto& [problem, conventions, numerics, group, first] = block;
  const Scores exact = scores(problem, group, first, Q, K);
  const ScoreError error = score_error(problem, numerics, group, first, Q, K, exact);
  if (K.rows() == 0) return;
  Weights weights(numerics, Q.rows(), K.rows());
  std::vector<Row> rows(static_cast<std::size_t>(Q.rows()));
  Workspace work;
  for (Eigen::Index r = 0; r < Q.rows(); ++r) {
    if (!std::isfinite(exact.S.row(r).maxCoeff())) {
      weights.all_present = false;
      continue;
    }
    rows[static_cast<std::size_t>(r)] = analyse({numerics, exact.S, error, r}, weights, work);
  }
  const BlockSums block_sums(numerics, weights, values);
  Vector center = Vector::Zero(values.V.cols());
  for (Eigen::Index r = 0; r < Q.rows(); ++r) {
    const Row& row = rows[static_cast<std::size_t>(r)];
    if (row.visible == 0) continue;
    center.head(O.cols()) = O.row(r);
    const Columns sums = sum_columns(numerics, row, r, weights, block_sums, values, center);
    const std::int64_t batch = group.sequence.tensor_batch;
    const std::int64_t query = group.sequence.q_begin + group.query(first + r);
    const std::int64_t head = group.query_head(first + r);
    for (Eigen::Index c = 0; c < O.cols(); ++c) {
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
    const Matrix keys = finite_part(key_rows(K, group));
    const Values values(finite_part(key_rows(V, group)));
    const std::int64_t blocks = (group.rows() + kBlockRows - 1) / kBlockRows;
#pragma omp parallel for schedule(dynamic)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t first = b * kBlockRows;
      const std::int64_t count = std::min(kBlockRows, group.rows() - first);
      const Matrix queries = finite_part(stacked_rows(Q, group, first, count));
      const Matrix O = finite_part(stacked_rows(exact.O.view(), group, first, count));
      bound_block({problem, conventions, numerics, group, first}, queries, O, keys, values, bounds);
    }
  }
  return bounds;
}

}  // namespace attest::reference
