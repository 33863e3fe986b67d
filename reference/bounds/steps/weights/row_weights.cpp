#include "reference/bounds/steps/weights/row_weights.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "reference/bounds/steps/roundoff.hpp"

namespace attest::reference {
namespace {

constexpr double kLargestExponent = 700;  // exp stays finite
constexpr double kNoBound = 0x1p900;   // stands for infinity: its product with a weight of 0 is 0
constexpr double kTileKeys = 16;       // the fewest of a kernel that divides O at each tile
constexpr double kTieWidth = 0x1p-33;  // of scores, relative to 1 + their largest magnitude

// How far a kernel may let its maximum stay behind undeclared: a factor of 2^8 in P.
constexpr double kStaleMaximum = 8 * std::numbers::ln2;

// How far a sink may lie above all scores of a kernel that adds it last: exp stays finite in
// float32.
constexpr double kLateSink = 88;

double exp_limited(double x) { return std::exp(std::min(x, kLargestExponent)); }

// log of the sum of exponentials, over all entries.
double log_sum_exp(const std::vector<double>& x) {
  const double largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (const double entry : x) sum += std::exp(entry - largest);
  return largest + std::log(sum);
}

// Fills P and present; maximum, LSE and the largest |score|, which is returned.
double softmax_row(const RowOfScores& in, Row& row, Weights& weights) {
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
  if (in.sink >= 0 && row.end == in.sink + 1 && row.visible > 1) {
    // A kernel may add the sink to the sum at the end: its maximum is that of the keys.
    const double of_keys = in.S.row(in.r).head(in.sink).maxCoeff();
    row.stale = std::max(row.stale, std::min(kLateSink, row.maximum - of_keys));
  }
  return largest;
}

// Fills the errors of the computed scores and finds the key above all others; returns the largest
// error.
double largest_score_error(const RowOfScores& in, Row& row, RowWorkspace& work) {
  work.score_error.assign(static_cast<std::size_t>(in.S.cols()), 0.0);
  double largest = 0, highest = -std::numeric_limits<double>::infinity(), second = highest;
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    if (!std::isfinite(in.S(in.r, j))) continue;
    const double error = std::min(in.error.largest(in.r, j), kNoBound);
    work.score_error[static_cast<std::size_t>(j)] = error;
    largest = std::max(largest, error);
    const double reach = in.S(in.r, j) + error;
    if (reach > highest) {
      second = highest;
      highest = reach;
      row.top = j;
    } else {
      second = std::max(second, reach);
    }
  }
  if (!(highest - 2 * work.score_error[static_cast<std::size_t>(row.top)] >= second)) row.top = -1;
  return largest;
}

// Merging splits through LSE (section "Splits merged through LSE"): what a key's weight errs
// against other splits' keys, and what the row errs as a whole because such weights do not sum to
// one.
void split_errors(const Numerics& numerics, double maximum_magnitude, double keys, Row& row) {
  if (numerics.lse_splits == 0) return;
  const double u = numerics.accumulator_roundoff, exponential = exponential_error(numerics);
  const double logarithm = std::log(row.visible) + row.stale;  // of a split's sum
  const double lse = maximum_magnitude + logarithm;
  const double merges = split_merges(numerics, keys);
  row.split = u * (4 * maximum_magnitude + 4 * lse + 6 * logarithm + 4) +
              merges * (2 * u * lse + exponential + 2 * u);
  row.split_common = merges * (3 * u * lse + 6 * u * logarithm + exponential + 8 * u);
}

void log_errors(const RowOfScores& in, double maximum_magnitude, Row& row, Weights& weights,
                RowWorkspace& work) {
  const double u = in.numerics.accumulator_roundoff;
  const double exponential = exponential_error(in.numerics);
  const double arguments = 6 * u * maximum_magnitude + row.split;
  const double merges = arguments + row.merges * (exponential + 2 * u);
  const double rescale = arguments + row.rescales.possible * (exponential + 2 * u);
  const double likely_rescale = arguments + row.rescales.likely * (exponential + 2 * u);
  const double* S = in.S.row(in.r).data();
  const double* P = weights.P.row(in.r).data();
  const double* magnitude = in.error.magnitude.row(in.r).data();
  double* proved = weights.proved.row(in.r).data();
  double* linear = weights.linear.row(in.r).data();
  double worst = 0, typical = 0;
  work.spread.assign(static_cast<std::size_t>(in.S.cols()), 0.0);
  work.raised.clear();
  double largest = 0, most_own = 0;
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    if (!std::isfinite(S[j])) continue;
    const double error = work.score_error[static_cast<std::size_t>(j)];
    // Two products and their difference, each rounded, of computed scores.
    const double argument = (2 + u) * u * (std::abs(S[j]) + error + maximum_magnitude);
    const bool never = j == row.top;  // no rise comes after the highest score
    const double own = argument + exponential + (never ? merges : rescale);
    const double eta = std::min(error + own, kNoBound);
    const double common =
        std::min(in.error.bias(in.r, j) + magnitude[j] * in.error.over_keys.linear + argument +
                     exponential + (never ? merges : likely_rescale),
                 kNoBound);
    const double deviation = magnitude[j] * in.error.over_keys.deviation;
    const double eps = growth(eta, kLargestExponent);
    work.raised.push_back(S[j] - row.lse + eta);
    largest = std::max(largest, eta);
    proved[j] = P[j] * eps;
    linear[j] = P[j] * common;
    work.spread[static_cast<std::size_t>(j)] = P[j] * deviation;
    most_own = std::max(most_own, own);
    row.likely_made_twice +=
        2 * P[j] * (argument + exponential + (never ? merges : likely_rescale));
    row.mean_log_error += P[j] * eta;
    row.mean_error += proved[j];
    row.mean_linear += linear[j];
    row.largest_error = std::max(row.largest_error, eps);
    worst = std::max(worst, kLambda * deviation + common);
    typical = std::max(typical, deviation * deviation + common);
  }
  row.made_twice = growth(2 * most_own, kLargestExponent);
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
void group_variances(const RowOfScores& in, double maximum_magnitude, Row& row, Weights& weights,
                     RowWorkspace& work) {
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
  row.coherence = work.groups.coherence(width, P, row.likely_deepest);
  row.drift = drift_of(row.coherence, row.visible, row.likely_deepest);
}

// Sets what weights and their sum may lose by flushing and by a cast to a subnormal.
void lost_weight(const Numerics& numerics, const Weights& weights, Eigen::Index r, Row& row) {
  const double merges = split_merges(numerics, static_cast<double>(weights.P.cols()));
  // Where subnormals are flushed, so is a sum of weights that a rescale makes one.
  const double flushed = flush_unit(numerics) * (1 + merges) + numerics.flushed_below;
  // The kernel's own largest weight is 1 before it is divided by a sum of at least 1/2.
  const double cast = numerics.p_underflow;
  const double largest = numerics.normalize == CastOrder::before ? 1.0 : row.largest_p;
  const auto loss = [&](double subnormal) {
    const double floor = flushed + subnormal * largest;
    return std::min(row.normalizer * floor, std::max(floor, 2 * (flushed + subnormal)));
  };
  row.lost = loss(cast);
  // The sums are divided by that of the weights, as a weight is.
  const double sums = accumulation_loss(numerics, row.visible, row.depth, row.rescales.possible);
  row.lost_in_products =
      std::min(row.normalizer * sums * largest, std::max(sums * largest, 2 * sums));
  // Partial results, of splits or tiles, may be divided before they are merged: they, their
  // products and the sum.
  const double splits = std::max(row.merges, row.visible / kTileKeys);
  const double parts = numerics.lse_splits > 0 ? row.visible : std::min(row.visible, splits);
  row.lost_in_products += 4 * parts * numerics.flushed_below;
  row.lost_in_sum = 0;
  if (numerics.row_sum == CastOrder::before || row.saturated) {
    row.lost_in_sum = row.visible * (numerics.row_sum == CastOrder::after ? row.lost : loss(0));
    return;
  }
  // No weight loses more than itself.
  for (std::int64_t j = row.begin; j < row.end; ++j) {
    const double most = row.normalizer * (weights.P(r, j) + weights.proved(r, j));
    row.lost_in_sum += std::min(most, row.lost);
  }
}

}  // namespace

Row analyse_row(const RowOfScores& in, Weights& weights, RowWorkspace& work) {
  Row row;
  const double largest = softmax_row(in, row, weights);
  // No computed score is larger than this.
  const double computed = largest + largest_score_error(in, row, work);
  constexpr double kUndeclaredSplits = 8;
  // Where exp(0) may differ from 1, tiles that keep the maximum rescale as well.
  row.rescales = {row.visible, row.visible};
  if (!in.numerics.exp_zero_is_one) {
    row.top = -1;
  } else {
    // A sink may come at any time, or into the sum alone: it adds one rise at most, and must not
    // hide those of keys that come after it.
    const std::int64_t sinks = in.sink >= 0 && row.end == in.sink + 1 ? 1 : 0;
    row.rescales = work.maximum.rises(in.S.row(in.r).data(), work.score_error.data(), row.begin,
                                      row.end - sinks);
    row.rescales.possible += static_cast<double>(sinks);
    row.rescales.likely += static_cast<double>(sinks);
  }
  // Masked keys may be in splits of their own.
  const auto keys = static_cast<double>(in.S.cols());
  row.merges = std::max(kUndeclaredSplits, split_merges(in.numerics, keys));
  const double depth = summation_depth(in.numerics, row.visible);
  for (double* count : {&row.rescales.possible, &row.rescales.likely}) *count += row.merges;
  row.depth = depth;
  row.deepest = depth + row.rescales.possible;
  row.likely_deepest = depth + row.rescales.likely;
  split_errors(in.numerics, computed, keys, row);
  log_errors(in, computed, row, weights, work);
  group_variances(in, largest, row, weights, work);
  lost_weight(in.numerics, weights, in.r, row);
  return row;
}

}  // namespace attest::reference
