#include "reference/bounds/steps/score_error.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "reference/bounds/steps/roundoff.hpp"

namespace attest::reference {

namespace {

double bias_of(const Problem& problem, const Group& group, std::int64_t row, std::int64_t key) {
  if (problem.bias.kind == Bias::Kind::none || key >= group.sequence.k_length) return 0;
  return problem.bias_at(group.sequence.number, group.query_head(row), group.query(row), key);
}

// The bias read in the type of the scores, multiplied where the exponential has another base, and
// the addition, relative to the result.
void add_bias_error(const Problem& problem, const Numerics& numerics, const Group& group,
                    std::int64_t first, std::int64_t first_key, const Scores& exact,
                    ScoreError& error) {
  if (problem.bias.kind == Bias::Kind::none) return;
  const double u = numerics.accumulator_roundoff;
  error.proved *= 1 + 2 * u;
  error.bias *= 1 + 2 * u;
  for (Eigen::Index r = 0; r < exact.S.rows(); ++r) {
    for (Eigen::Index j = 0; j < exact.S.cols(); ++j) {
      if (!std::isfinite(exact.S(r, j))) continue;
      const double bias = bias_of(problem, group, first + r, first_key + j);
      if (first_key + j == group.sequence.k_length) continue;  // the sink has none
      error.bias(r, j) +=
          u * (2 * std::abs(exact.S(r, j)) + 3 * std::abs(bias)) + 3 * numerics.flushed_below;
    }
  }
}

// Scores rounded to a type of their own, as often as `score_casts` says: each rounding is of a part
// no larger than the sum of all parts.
void add_cast_error(const Problem& problem, const Numerics& numerics, const Group& group,
                    std::int64_t first, std::int64_t first_key, const Scores& exact,
                    ScoreError& error) {
  if (numerics.score_roundoff == 0) return;
  const double casts = score_casts(problem).of_score;
  const double all = std::expm1(casts * std::log1p(numerics.score_roundoff));
  // tanh passes on no more than x sech^2 x <= tanh x of a relative error, where x was no smaller.
  const double relative = all / (1 - numerics.score_roundoff);
  const double lost = casts * numerics.score_underflow * std::max(1.0, std::abs(problem.scale()));
  const std::vector<float> slopes = problem.alibi_slopes();
  error.proved *= 1 + relative;
  error.bias *= 1 + relative;
  for (Eigen::Index r = 0; r < exact.S.rows(); ++r) {
    const std::int64_t aligned =
        problem.mask.aligned_key(group.sequence, group.query(first + r)) - first_key;
    const double slope =
        slopes.empty() ? 0 : slopes[static_cast<std::size_t>(group.query_head(first + r))];
    for (Eigen::Index j = 0; j < exact.S.cols(); ++j) {
      if (!std::isfinite(exact.S(r, j))) continue;
      const bool sink = first_key + j == group.sequence.k_length;
      const double parts = sink ? 0
                                : std::abs(bias_of(problem, group, first + r, first_key + j)) +
                                      std::abs(slope) * static_cast<double>(std::abs(aligned - j));
      error.bias(r, j) += relative * (std::abs(exact.S(r, j)) + parts) + lost;
    }
  }
}

}  // namespace

ScoreCasts score_casts(const Problem& problem) {
  int exponent = 0;
  const bool shifts = std::abs(std::frexp(problem.scale(), &exponent)) == 0.5;
  const double scale = shifts ? 0 : 1, cap = problem.softcap > 0 ? 3 : 0;
  const double bias = problem.bias.kind == Bias::Kind::none ? 0 : 2;
  const double alibi = problem.alibi_slopes().empty() ? 0 : 3;
  return {1 + scale + cap + bias + alibi, scale + cap};
}

ScoreError score_error(const Problem& problem, const Numerics& numerics, const Group& group,
                       std::int64_t first, std::int64_t first_key, Magnitudes products,
                       const Scores& exact) {
  const double u = numerics.accumulator_roundoff;
  const double terms = static_cast<double>(problem.head_dim_qk), others = 3;  // scale, max, shift
  ScoreError error;
  error.magnitude = std::move(products.all);
  // Every product has all of these factors at once.
  const double rounded = (1 + numerics.input_roundoff) * (1 + numerics.input_roundoff) *
                         (1 + numerics.scaled_q_roundoff) * (1 + operand_error(numerics));
  error.proved = (1 + accumulation_error(numerics, terms, others)) * rounded - 1;
  const double additions = accumulation_deviation(numerics, terms + others),
               in = numerics.input_roundoff;
  // Where additions are biased the scale's rounding is part of the bias.
  const double scaled = numerics.scaled_q_roundoff + (additions > 0 ? u : 0.0);
  const double again = operand_error(numerics);  // of no rounding mode: nothing random is assumed
  constexpr double kNoBound = 0x1p900;           // stands for infinity: its product with 0 is 0
  const double biased = again + std::min(accumulation_bias(numerics, terms, others), kNoBound);
  error.over_keys = {scaled + in + biased, std::hypot(additions, in)};
  error.over_rows = {in + biased, std::hypot(additions, scaled, in)};
  const double lost =
      accumulation_loss(numerics, terms, terms, others) * std::max(1.0, std::abs(problem.scale()));
  error.bias = error.magnitude.unaryExpr([&](double A) { return A > 0 ? lost : 0.0; });
  if (products.vanishing.size() > 0) error.bias += products.vanishing;
  const double flushed = numerics.flushed_below;
  if (problem.softcap > 0) {
    // |tanh'| <= 1 passes the error of the argument on; x sech^2 x <= tanh x bounds the rounding of
    // s/softcap, then the function's own error and one product.
    const double relative = exponential_error(numerics) + 3 * u;
    error.proved *= 1 + relative;  // of the computed score
    // s/softcap and its tangent, which is multiplied by softcap, may be subnormal.
    error.bias.array() += (2 * problem.softcap + 1) * flushed;
    for (Eigen::Index r = 0; r < exact.S.rows(); ++r) {
      for (Eigen::Index j = 0; j < exact.S.cols(); ++j) {
        const double t = std::sqrt(1 - exact.slope(r, j));
        // Without a bound on the function, a score of 0 is 0 all the same.
        if (t > 0) error.bias(r, j) += relative * problem.softcap * t;
      }
    }
  }
  add_bias_error(problem, numerics, group, first, first_key, exact, error);
  const auto with_casts = [&] {
    add_cast_error(problem, numerics, group, first, first_key, exact, error);
    return std::move(error);
  };
  const std::vector<float> slopes = problem.alibi_slopes();
  if (slopes.empty()) return with_casts();
  error.proved *= 1 + 2 * u;
  error.bias *= 1 + 2 * u;
  for (Eigen::Index r = 0; r < exact.S.rows(); ++r) {
    const double slope = slopes[static_cast<std::size_t>(group.query_head(first + r))];
    const std::int64_t aligned =
        problem.mask.aligned_key(group.sequence, group.query(first + r)) - first_key;
    for (Eigen::Index j = 0; j < exact.S.cols(); ++j) {
      if (!std::isfinite(exact.S(r, j))) continue;
      if (first_key + j == group.sequence.k_length) continue;  // the sink has none
      // The product slope * distance and the addition, both relative to their results.
      const double alibi = slope * static_cast<double>(std::abs(aligned - j));
      const double bias = bias_of(problem, group, first + r, first_key + j);
      error.bias(r, j) += 2 * u * (std::abs(exact.S(r, j)) + std::abs(bias) + alibi);
      // The slope, its product and the sum may be subnormal.
      error.bias(r, j) += (static_cast<double>(std::abs(aligned - j)) + 2) * flushed;
    }
  }
  return with_casts();
}

}  // namespace attest::reference
