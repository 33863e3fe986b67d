#include "reference/bounds/steps/delta_errors.hpp"

#include <algorithm>
#include <cmath>

#include "reference/bounds/steps/gradient_sums.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/score_error.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

// Errors of P dP of a tile's pairs, with the row's LSE as it is stored.
struct PairErrors {
  Matrix magnitude;  // exact |P dP|
  WeightedErrors errors;
};

PairErrors pair_errors(const GradientInputs& in, const RowErrors& rows, const RowBlock& block,
                       const KeyTile& tile, Vector& terms) {
  const auto& [exact, error, dP, of_dP] = TileProducts(in, block, tile);
  const WeightErrors weights(in.numerics, error);
  const CastOfDP dp(in.numerics);
  const double products = static_cast<double>(in.problem.head_dim_v), others = 2;
  const double proved = accumulation_error(in.numerics, products, others),
               bias = accumulation_bias(in.numerics, products, others),
               deviation = accumulation_deviation(in.numerics, products + others),
               again = operand_error(in.numerics), flush = flush_unit(in.numerics),
               lost_products = accumulation_loss(in.numerics, products, products, others);
  const auto zeros = [&] { return Matrix(Matrix::Zero(block.count, tile.count)); };
  PairErrors pairs{zeros(), {zeros(), zeros(), zeros()}};
  for (Eigen::Index i = 0; i < block.count; ++i) {
    const double LSE = rows.lse(block.first + i), EL = rows.lse_error(block.first + i);
    if (!std::isfinite(LSE)) continue;
    const double growth = std::expm1(std::min(EL, kLargestLogError));
    for (Eigen::Index j = 0; j < tile.count; ++j) {
      if (!std::isfinite(exact.S(i, j))) continue;
      const WeightError weight = weights(i, j, exact.S(i, j), LSE, EL, 1 + growth);
      const double P = std::exp(exact.S(i, j) - LSE), x = std::abs(dP(i, j));
      const double magnitude = of_dP.all(i, j), lost = lost_products + of_dP.lost(i, j);
      const double sum = (proved + again * (1 + proved)) * magnitude + lost * (1 + proved);
      const double cast = dp(x, sum), pi = sum + cast;
      // P below the smallest normal number, and the product.
      const double floor = 2 * flush * (1 + x + pi);
      pairs.magnitude(i, j) = P * x;
      pairs.errors.proved(i, j) = P * (weight.own * x + (1 + weight.own + growth) * pi) + floor;
      pairs.errors.linear(i, j) =
          P * (weight.over_keys.linear * x + (bias + again) * magnitude + lost + cast) + floor;
      pairs.errors.deviation(i, j) =
          P * std::hypot(weight.over_keys.deviation * x, deviation * magnitude);
      terms(i) += 1;
    }
  }
  return pairs;
}

}  // namespace

void add_delta_errors(const GradientInputs& in, const RowBlock& block,
                      const std::vector<KeyTile>& tiles, RowErrors& rows) {
  if (in.numerics.delta != DeltaSource::pairs) return;
  constexpr double kMerges = 8;   // of partial sums of tiles
  Numerics uncast = in.numerics;  // the sum is over P and dP as they were computed
  uncast.p_roundoff = uncast.p_underflow = 0;
  const double u = uncast.accumulator_roundoff;
  const Matrix one_each = Matrix::Ones(in.K.rows(), 1);
  const Operand ones(one_each, {one_each, {}});
  SumsOfOutputs sums(uncast, ones, block.count);
  Vector terms = Vector::Zero(block.count);
  for (const KeyTile& tile : tiles) {
    const PairErrors pairs = pair_errors(in, rows, block, tile, terms);
    sums.add(tile.first, pairs.magnitude, pairs.errors);
  }
  const GradientSums of = sums.finish(terms);
  for (Eigen::Index i = 0; i < block.count; ++i) {
    const Eigen::Index r = block.first + i;
    if (terms(i) == 0) continue;
    const double depth = summation_depth(uncast, terms(i)) + kMerges;
    const double chain = std::max(gamma(depth, u), accumulation_error(uncast, depth));
    const double walk = accumulation_deviation(uncast, depth);
    const double drift = drift_of(of.coherence(i), terms(i), depth);
    const double bias = accumulation_bias(uncast, depth) + drift * u;
    const double EL = rows.lse_error(r);
    const double growth = std::expm1(std::min(EL, kLargestLogError));
    // dLSE is subtracted at either end of the sum; what LSE errs multiplies the whole of it.
    const double dLSE = std::abs(in.dLSE(r)), delta = std::abs(rows.delta(r));
    const double whole = std::abs(rows.delta(r) + in.dLSE(r)), all = of.absolute(i, 0) + dLSE;
    const double flushed = 2 * uncast.flushed_below;  // dLSE, and the difference
    const double sum = of.proved(i, 0) + growth * whole + flushed +
                       chain * (all + growth * of.absolute(i, 0) + of.proved(i, 0));
    rows.delta_proved(r) = sum + 2 * u * (delta + sum);
    // The LSE that nobody saw: (U5).
    rows.delta_bias(r) =
        of.linear(i, 0) + bias * all + 2 * u * delta + rows.lse_unseen(r) * whole + flushed;
    // The measured part of EL is known, sign and all.
    rows.inherited(r) = std::expm1(-rows.lse_shift(r)) * (rows.delta(r) + in.dLSE(r));
    rows.delta_linear(r) =
        rows.delta_bias(r) + std::abs(rows.inherited(r)) + rows.lse_rounding(r) * whole;
    rows.delta_deviation(r) = std::hypot(std::sqrt(of.variance(i, 0)), walk * all);
  }
}

}  // namespace attest::reference
