#include "reference/bounds/steps/loss_error.hpp"

#include <Eigen/Eigenvalues>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "core/rng.hpp"
#include "reference/bounds/steps/coherent_groups.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/weights/running_maximum.hpp"
#include "reference/threads.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

constexpr double kLargestExponent = 700;  // exp stays finite

// A fixed random vector: equal rows have equal products with it, others do not.
Vector random_vector(Eigen::Index size, std::uint64_t stream) {
  Rng rng(0x10552u, stream);
  Vector vector(size);
  for (double& x : vector) x = rng.normal();
  return vector;
}

// Positions of the values in ascending order, and greedy groups of them: each begins at the
// smallest value left and reaches `width` further.
class Groups {
 public:
  explicit Groups(const Eigen::Ref<const Vector>& values)
      : values_(values), order_(static_cast<std::size_t>(values.size())) {
    std::iota(order_.begin(), order_.end(), Eigen::Index{0});
    std::sort(order_.begin(), order_.end(),
              [&](Eigen::Index a, Eigen::Index b) { return values_(a) < values_(b); });
  }

  // visit(first, last) with positions in order().
  template <typename Visit>
  void for_each(double width, const Visit& visit) const {
    for (std::size_t begin = 0, end = 0; begin < order_.size(); begin = end) {
      const double least = values_(order_[begin]);
      for (end = begin + 1; end < order_.size() && values_(order_[end]) - least <= width;) ++end;
      visit(begin, end);
    }
  }

  const std::vector<Eigen::Index>& order() const { return order_; }

 private:
  Vector values_;
  std::vector<Eigen::Index> order_;
};

// How many entries lie within a relative `width` of each.
Vector occurrences(const Vector& values, double width) {
  const Groups groups(values);
  Vector count(values.size());
  groups.for_each(width * values.cwiseAbs().maxCoeff(), [&](std::size_t begin, std::size_t end) {
    for (std::size_t k = begin; k < end; ++k) {
      count(groups.order()[k]) = static_cast<double>(end - begin);
    }
  });
  return count;
}

// How often the running maximum can rise after its start, scanning either way.
Rises rises(const Numerics& numerics, const Matrix& S, const Matrix& errors, Eigen::Index row,
            RunningMaximum& maximum) {
  const auto keys = static_cast<double>(S.cols());
  if (!numerics.exp_zero_is_one) return {keys, keys};
  const Rises all = maximum.rises(S.row(row).data(), errors.row(row).data(), 0, S.cols());
  return {all.possible - 1, all.likely - 1};
}

// Errors of the scores, whichever of the two products is formed first.
struct ScoreParts {
  Matrix proved, linear, variance;
};

ScoreParts score_parts(const LossTerms& t, const Numerics& numerics, const Repeats& repeats) {
  const auto terms = static_cast<double>(t.X.rows()) + 3;  // and scale, constant, shift
  const double operand = 2 * numerics.input_roundoff + std::pow(numerics.input_roundoff, 2);
  const double sum = accumulation_error(numerics, terms);
  const double a = sum + operand + sum * operand;
  const double bias = accumulation_bias(numerics, terms) + operand;
  const double walk = accumulation_deviation(numerics, terms);
  const Matrix left = product(t.A1.cwiseAbs(), t.X.cwiseAbs());
  const Matrix right = product(t.A2.cwiseAbs(), t.X.cwiseAbs().transpose());
  const Matrix A2 = t.A2.cwiseAbs().transpose();
  const Matrix magnitude = product(left, A2);
  const Matrix A2X = product(t.A2, t.X.transpose());
  const Matrix second =
      product(t.A1X.cwiseAbs(), A2).cwiseMax(product(t.A1.cwiseAbs(), A2X.cwiseAbs().transpose()));
  // Errors of the first product are common to a row, or to a column, of scores. Their covariance
  // sigma^2 A A^T is at most sigma^2 |A|_2^2.
  const Vector of_row = left.rowwise().maxCoeff() * largest_singular(t.A2);
  const Vector of_key = right.rowwise().maxCoeff() * largest_singular(t.A1);
  ScoreParts parts;
  parts.proved = a * ((1 + a) * magnitude + second);
  parts.linear = bias * ((1 + bias) * magnitude + second);
  parts.variance = second.cwiseAbs2();
#pragma omp parallel for schedule(static) if (worth_threads(kEntryOperations * second.size()))
  for (Eigen::Index i = 0; i < second.rows(); ++i) {
    const double rows = repeats.scores_of_row(i);
    for (Eigen::Index j = 0; j < second.cols(); ++j) {
      const double keys = repeats.scores_of_key(j);
      const double first = std::max(rows * of_row(i) * of_row(i), keys * of_key(j) * of_key(j));
      parts.variance(i, j) = walk * walk * (rows * keys * parts.variance(i, j) + first);
    }
  }
  return parts;
}

}  // namespace

Repeats repeats_of(const LossTerms& t, const Numerics& numerics) {
  constexpr double kTieWidth = 0x1p-33;
  const Vector row_scores = t.S * random_vector(t.S.cols(), 1);
  const Vector row_c = t.c * random_vector(t.c.cols(), 2);
  const Vector key_scores = t.S.transpose() * random_vector(t.S.rows(), 3);
  const Vector key_h = t.h * random_vector(t.h.cols(), 4);
  Repeats repeats;
  repeats.scores_of_row = occurrences(row_scores, kTieWidth);
  repeats.c_of_row = occurrences(row_c, kTieWidth);
  repeats.scores_of_key = occurrences(key_scores, kTieWidth);
  repeats.h_of_key = occurrences(key_h, kTieWidth);
  const double near = static_cast<double>(t.S.cols()) * numerics.accumulator_roundoff;
  const double depth = summation_depth(numerics, static_cast<double>(t.S.cols()));
  const auto coherence = [&](const Vector& a, const Vector& b) {
    const double most = occurrences(a, near).cwiseMin(occurrences(b, near)).maxCoeff();
    return std::min(most, depth);
  };
  repeats.row_coherence = coherence(row_scores, row_c);
  repeats.key_coherence = coherence(key_scores, key_h);
  return repeats;
}

Matrix spread(const Matrix& f, const Matrix& columns) {
  const Matrix centred = columns.rowwise() - columns.colwise().mean();
  const Matrix square = product(f, centred.cwiseAbs2());
  const double slack = (static_cast<double>(f.cols()) + 4) * std::numeric_limits<double>::epsilon();
  return ((1 + slack) * square - product(f, centred).cwiseAbs2()).cwiseMax(0.0).cwiseSqrt();
}

double largest_singular(const Matrix& matrix) {
  const bool tall = matrix.rows() > matrix.cols();
  const Matrix gram =
      tall ? transposed_product(matrix, matrix) : product(matrix, matrix.transpose());
  if (!gram.allFinite()) return std::numeric_limits<double>::infinity();
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(gram, Eigen::EigenvaluesOnly);
  constexpr double kRoundedUp = 1.001;
  return kRoundedUp * std::sqrt(std::max(0.0, solver.eigenvalues().maxCoeff()));
}

LossWeightError weight_error(const LossTerms& t, const Numerics& numerics, const Repeats& repeats) {
  const double u = numerics.accumulator_roundoff, exponential = exponential_error(numerics);
  const Eigen::Index n = t.S.rows();
  const auto keys = static_cast<double>(n);
  ScoreParts scores = score_parts(t, numerics, repeats);
  LossWeightError e;
  e.individual = std::move(scores.proved);
  e.linear = std::move(scores.linear);
  e.variance = std::move(scores.variance);
  for (auto* vector : {&e.common, &e.common_linear, &e.common_variance, &e.normal, &e.normal_linear,
                       &e.normal_variance, &e.forward_rms, &e.forward_linear, &e.rises,
                       &e.likely_rises, &e.coherence}) {
    *vector = Vector::Zero(n);
  }
#pragma omp parallel if (worth_threads(kEntryOperations * n * n))
  {
    CoherentGroups groups;
    RunningMaximum maximum;
#pragma omp for schedule(static)
    for (Eigen::Index i = 0; i < n; ++i) {
      // Arguments are of computed scores.
      const double moved_score = e.individual.row(i).maxCoeff();
      const double m = t.S.row(i).maxCoeff();
      const double M = t.S.row(i).cwiseAbs().maxCoeff() + moved_score;
      const double L = m - std::log(t.f.row(i).maxCoeff());
      const Rises R = rises(numerics, t.S, e.individual, i, maximum);
      const double rounding = u * (2 * (std::abs(m) + moved_score) +
                                   3 * (std::abs(L) + moved_score) + 4 * std::max(0.0, L - m) + 2);
      const double score_mean = t.f.row(i).dot(e.individual.row(i));
      double moved = 0, drifted = 0, variance = 0, square = 0, linear_square = 0;
      double forward_moved = 0, again_moved = 0, own_linear = 0;
      for (Eigen::Index j = 0; j < n; ++j) {
        const double s = t.S(i, j), f = t.f(i, j), score = e.individual(i, j);
        const double magnitude = std::abs(s) + score;
        const double below = std::max(0.0, m - s) + score + moved_score;
        const double beside = std::abs(s - L) + score + moved_score;  // the stored LSE
        // Errors, beyond the score, of the weights that are added up and of those of LSE.
        const double rescales = 3 * u * below + R.possible * exponential;
        const double forward = u * (magnitude + M + below) + exponential + rescales;
        const double argument =
            u * std::max(magnitude + std::abs(L) + moved_score + 2 * beside, magnitude + M + below);
        const double again = argument + exponential + 2 * u;
        e.individual(i, j) = score + again;
        e.linear(i, j) += exponential + 2 * u + u * beside;
        e.variance(i, j) +=
            repeats.scores_of_row(i) * repeats.scores_of_key(j) * argument * argument;
        const double forward_linear =
            e.linear(i, j) + u * M + 3 * u * below + R.likely * exponential;
        const double moves = growth(score + std::max(forward, again), kLargestExponent);
        moved += f * moves;
        square += f * moves * moves;
        drifted += f * forward_linear;
        linear_square += f * forward_linear * forward_linear;
        variance += f * f * e.variance(i, j);
        const double computed = f * (1 + growth(score + score_mean, kLargestExponent));
        forward_moved += computed * growth(forward, kLargestExponent);
        again_moved += computed * growth(again, kLargestExponent);
        own_linear += f * (forward + again);
      }
      const double chain = summation_depth(numerics, keys);
      const double depth = chain + R.possible, likely_depth = chain + R.likely;
      const double sum = -std::log1p(-std::min(accumulation_error(numerics, depth), 1.0));
      if (keys >= kDriftTerms) {
        groups.sort(t.f.row(i).data(), n);
        e.coherence(i) = groups.coherence(keys * u, t.f.row(i).data(), likely_depth);
      }
      const double added = rounding + accumulation_bias(numerics, likely_depth) +
                           u * drift_of(e.coherence(i), keys, likely_depth);
      const double added_variance =
          repeats.scores_of_row(i) * std::pow(accumulation_deviation(numerics, likely_depth), 2);
      e.rises(i) = R.possible;
      e.likely_rises(i) = R.likely;
      e.common(i) = std::log1p(moved) + sum + rounding;
      e.common_linear(i) = drifted + added;
      e.common_variance(i) = variance + added_variance;
      const double lse = std::log1p(forward_moved) + sum + rounding;
      e.normal(i) = growth(lse, kLargestExponent) * (1 + again_moved) + again_moved;
      e.normal_linear(i) = own_linear + added;
      e.normal_variance(i) = added_variance;
      e.forward_rms(i) = std::sqrt(square);
      e.forward_linear(i) = std::sqrt(linear_square);
    }
  }
  return e;
}

}  // namespace attest::reference
