// Error bounds of O and LSE: docs/theory/error-bounds/forward.md.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>

#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/distance_sums.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/score_error.hpp"
#include "reference/bounds/steps/weights/row_weights.hpp"
#include "reference/group.hpp"
#include "reference/threads.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

constexpr std::int64_t kProducts = 8;    // as large as that of the scores
constexpr std::int64_t kBlockRows = 32;  // a block's weights stay near the cache
// V and what is summed with it, once per sequence and K/V head.
struct Values {
  Matrix V;                  // padded for distance_sums
  Matrix magnitude, square;  // |v|, v^2
  Matrix total;              // (1, columns): sum of |v| over all keys

  explicit Values(const Matrix& values)
      : V(padded_columns(values)),
        magnitude(V.cwiseAbs()),
        square(V.cwiseAbs2()),
        total(column_sums(magnitude).transpose()) {}
};

// The sums over keys that each column of V needs, for one row.
struct Columns {
  DistanceSums distance;       // of |v - O| and its square
  Vector farthest;             // max |v - O|, +inf where nothing would come of it
  Vector deviation_from_mean;  // sum P |v - O|
  Vector absolute, plain;      // sum P |v|, sum |v|
  Vector cast_variance;
};

// Sums that are products of matrices, for a block of rows.
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

// `of_sum` is the contract of the row sum, which no matrix unit makes.
Element bound_element(const Numerics& numerics, const Numerics& of_sum, const Row& row,
                      const Columns& sums, Eigen::Index c, double O) {
  const double u = numerics.accumulator_roundoff;
  const double magnitude = std::abs(O);
  const double up = numerics.p_roundoff, operand = operand_error(numerics);
  const double products = rescaled_sum_error(numerics, row.depth, row.rescales.possible);
  const double accumulation = accumulation_error(of_sum, row.deepest);
  // Returns what e^errors prove, or that O stays among the values.
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
  const bool vanish = operand > 0 || numerics.flushed_below > 0;  // a small P or value
  const double vanishing = vanish ? 2 * flush_unit(numerics) : 0;
  // A product, a rescaled sum and the two sides of a merge are each rounded to a subnormal: seen
  // where a sink leaves the keys little weight, or values are tiny.
  const double underflowed = 4 * row.visible * (u == 0x1p-53 ? 0x1p-1074 : 0x1p-149);
  const double flushed = sums.plain(c) * row.lost + magnitude * row.lost_in_sum +
                         row.lost_in_products + vanishing + underflowed;
  const double again = operand * carried * (1 + up);
  const double summed =
      products * (carried * (1 + up) * (1 + operand)) + accumulation * (magnitude + weights);
  // From n u = 1/2 on nothing is proved: gamma(n, u) >= 1.
  // P is divided by the sum of other weights: those of an earlier pass over the keys.
  const bool twice = numerics.normalize == CastOrder::before;
  const double apart = twice ? row.made_twice : 0;
  const double parts =
      accumulation < 1 ? weights + apart * (magnitude + weights) +
                             (1 + apart) * (cast + again + flushed + summed) / (1 - accumulation)
                       : std::numeric_limits<double>::infinity();
  const double merged =
      numerics.lse_splits > 0 ? std::expm1(row.split_common) * (magnitude + parts) : 0.0;
  const double E = parts + merged;
  const double out = numerics.output_roundoff + 3 * u;
  Element element{};
  element.proved = E + out * (magnitude + E) + numerics.output_underflow;
  const double walk = accumulation_deviation(numerics, row.likely_deepest),
               sum_walk = accumulation_deviation(of_sum, row.likely_deepest);
  const double variance = sums.distance.square(c) + sums.cast_variance(c) +
                          std::pow(walk * sums.absolute(c), 2) + std::pow(sum_walk * magnitude, 2);
  const double likely = rescaled_sum_error(numerics, row.depth, row.rescales.likely);
  const double biased = accumulation_bias(numerics, row.depth) > 0 ? likely : 0;
  const double linear = sums.distance.second(c) + flushed + row.split_common * magnitude +
                        row.drift * u * (sums.absolute(c) + magnitude) +
                        (biased + operand) * sums.absolute(c) +
                        (twice ? row.likely_made_twice * magnitude : 0) +
                        accumulation_bias(of_sum, row.likely_deepest) * magnitude;
  // Roundings that are no small ones meet what else errs.
  const double together = (1 + operand) * (numerics.sum_roundoff > 0 ? 1 + likely : 1.0);
  const double Ep = row.saturated
                        ? element.proved
                        : row.inflation * together * (kLambda * std::sqrt(variance) + linear);
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

// Bounds LSE under the row sum's contract.
Element bound_lse(const Numerics& numerics, LseBase base, const Row& row) {
  const double u = numerics.accumulator_roundoff;
  const double accumulation = accumulation_error(numerics, row.deepest);
  const bool after = numerics.row_sum == CastOrder::after;
  const double rounding = u * (4 * std::abs(row.maximum) + 4 * std::abs(row.lse) +
                               6 * std::abs(std::log(row.largest_p)) + 10 * row.stale + 4);
  const double lost = -std::log1p(-std::min(1.0, row.lost_in_sum));
  Element element{};
  element.proved = row.lse_growth - std::log1p(-std::min(1.0, accumulation)) -
                   (after ? std::log1p(-numerics.p_roundoff) : 0.0) + rounding + row.split_common +
                   lost;
  double variance =
      row.lse_variance + std::pow(accumulation_deviation(numerics, row.likely_deepest), 2);
  if (after) variance += row.cast_variance;
  const double linear = row.mean_linear + row.split_common + lost + row.drift * u +
                        accumulation_bias(numerics, row.likely_deepest);
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
  const Numerics &numerics, &of_sum;
  const Group& group;
  std::int64_t first;
};

void bound_block(const Block& block, const Matrix& Q, const Matrix& O, const Matrix& K,
                 const Magnitudes& K_magnitudes, const Values& values, ForwardBounds& bounds) {
  const auto& [problem, conventions, numerics, of_sum, group, first] = block;
  const Scores exact = scores(problem, group, first, Q, K);
  Magnitudes products = product(magnitudes(numerics, Q, problem.scale()), K_magnitudes);
  products *= std::abs(problem.scale());
  const ScoreError error =
      score_error(problem, numerics, group, first, 0, std::move(products), exact);
  if (K.rows() == 0) return;
  const std::int64_t sink = group.sinks > 0 ? group.sequence.k_length : -1;
  Weights weights(numerics, Q.rows(), K.rows());
  std::vector<Row> rows(static_cast<std::size_t>(Q.rows()));
  RowWorkspace work;
  for (Eigen::Index r = 0; r < Q.rows(); ++r) {
    if (!std::isfinite(exact.S.row(r).maxCoeff())) {
      weights.all_present = false;
      continue;
    }
    rows[static_cast<std::size_t>(r)] =
        analyse_row({numerics, exact.S, error, r, sink}, weights, work);
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
      const Element element = bound_element(numerics, of_sum, row, sums, c, O(r, c));
      bounds.O.deterministic.set(element.proved, batch, query, head, c);
      bounds.O.probabilistic.set(element.probable, batch, query, head, c);
      bounds.O.sigma.set(element.sigma, batch, query, head, c);
    }
    const Element element = bound_lse(of_sum, conventions.lse_base, row);
    bounds.LSE.deterministic.set(element.proved, batch, head, query);
    bounds.LSE.probabilistic.set(element.probable, batch, head, query);
    bounds.LSE.sigma.set(element.sigma, batch, head, query);
  }
}

}  // namespace

ForwardBounds forward_bounds(const Problem& problem, const Conventions& conventions,
                             const Numerics& declared, const TensorView& Q, const TensorView& K,
                             const TensorView& V, const Forward& exact,
                             const PositionsInSequences* queries) {
  require_covered(declared);
  const Numerics numerics = with_sums_apart(declared), of_sum = of_other_sums(numerics);
  const auto like = [](const char* name, const std::vector<Axis>& axes) {
    const auto zeros = [&] { return Tensor(name, DType::f64, axes); };
    return ErrorBound{zeros(), zeros(), zeros()};  // no copies: of a sample few pages are written
  };
  ForwardBounds bounds{like("bound of O", problem.o_axes()),
                       like("bound of LSE", problem.lse_axes())};
  for (const Group& group : groups_of(problem, queries)) {
    const Matrix keys = finite_part(key_rows(K, group));
    const Magnitudes keys_magnitudes = magnitudes(numerics, keys.transpose());
    const Values values(finite_part(key_rows(V, group)));
    const bool threads = worth_threads(kProducts * score_operations({group}, problem.head_dim_qk));
    const std::int64_t blocks = (group.rows() + kBlockRows - 1) / kBlockRows;
#pragma omp parallel for schedule(dynamic) if (threads)
    for (std::int64_t b = 0; b < blocks; ++b) {
      const std::int64_t first = b * kBlockRows;
      const std::int64_t count = std::min(kBlockRows, group.rows() - first);
      const Matrix rows = finite_part(stacked_rows(Q, group, first, count));
      const Matrix O = finite_part(stacked_rows(exact.O.view(), group, first, count));
      bound_block({problem, conventions, numerics, of_sum, group, first}, rows, O, keys,
                  keys_magnitudes, values, bounds);
    }
  }
  return bounds;
}

void widen(ErrorBound& bound, const ErrorBound& by) {
  const auto combine = [](Tensor& to, const Tensor& from, const auto& sum) {
    double* const elements = to.doubles();
    const double* const added = from.doubles();
    for (std::int64_t e = 0; e < to.view().size(); ++e) {
      if (added[e] != 0) elements[e] = sum(elements[e], added[e]);
    }
  };
  combine(bound.deterministic, by.deterministic, std::plus());
  combine(bound.probabilistic, by.probabilistic, std::plus());
  combine(bound.sigma, by.sigma, [](double a, double b) { return std::hypot(a, b); });
}

}  // namespace attest::reference
