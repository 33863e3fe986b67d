#include "reference/bounds/steps/entry_errors.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/score_error.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

double square(double x) { return x * x; }

// Terms that one row's entries share.
struct RowTerms {
  Eigen::Index number;  // of the stacked rows
  double lse, delta, lse_error, delta_proved;
  double lse_growth, lse_factor;  // e^EL - 1, e^EL
  double lse_likely;              // EL as the probabilistic bound has it
  double lse_rounding;            // the part of it that is random over rows
  double lse_unseen;              // and the part that may err alike in all rows
  double shift_growth;            // what the measured part makes of P, relative and signed
  double inherited;               // what is stored leaves in delta, signed
  double delta_bias;              // what errs the same way in all rows
  double delta_spread;            // variance of delta and the square of its other errors
};

// softcap: dS is multiplied by 1 - t^2, whose error follows that of the score.
struct SlopeError {
  double slope = 1, proved = 0;
  SummedError over_keys{}, over_rows{};
};

// The contract's constants, and one entry after the other.
class EntryAnalysis {
 public:
  EntryAnalysis(const GradientInputs& in, const ScoreError& error)
      : error_(error),
        weights_(in.numerics, error),
        pairs_(in.numerics.delta == DeltaSource::pairs),
        u_(in.numerics.accumulator_roundoff),
        up_(in.numerics.p_roundoff),
        p_underflow_(in.numerics.p_underflow),
        of_dS_(in.numerics, in.problem),
        dp_(in.numerics),
        exponential_(exponential_error(in.numerics)),
        flush_(flush_unit(in.numerics)),
        softcap_(in.problem.softcap),
        alike_dO_(in.alike_dO) {
    const double terms = static_cast<double>(in.problem.head_dim_v), others = 2;
    product_ = accumulation_error(in.numerics, terms, others);
    product_deviation_ = accumulation_deviation(in.numerics, terms + others);
    product_bias_ = accumulation_bias(in.numerics, terms, others);
    product_lost_ = accumulation_loss(in.numerics, terms, terms, others);
    // dS is multiplied by the slope and the scale, and read again.
    const double scale = std::min(1.0, std::abs(in.problem.scale()));
    cast_slope_ = softcap_ > 0 ? 3 * in.numerics.score_roundoff : 0;
    flushed_dS_ = in.numerics.flushed_below * (2 + (scale > 0 ? 1 / scale : 0));
    operands_ = operand_error(in.numerics);
  }

  void operator()(const RowTerms& row, double s, double dP, const Magnitudes& of_dP, double slope,
                  Eigen::Index i, Eigen::Index j, EntryErrors& e) const {
    const double EL = row.lse_error, ED = row.delta_proved;
    const double P = std::exp(s - row.lse);
    const double raw = P * std::abs(dP - row.delta), G = std::abs(dP - row.delta);
    // A sum of dP may start from the stored delta.
    const double magnitude = of_dP.all(i, j) + std::abs(row.delta) + ED;
    const WeightError weight = weights_(i, j, s, row.lse, EL, row.lse_factor);
    const SummedError &of_row = weight.over_keys, &of_key = weight.over_rows;
    const double th = weight.proved, own = weight.own;
    // The errors of P and of the slope meet dP less the delta that the kernel has.
    const double inherited = std::abs(row.inherited), met = G + inherited;
    const double again = operands_ * of_dP.all(i, j) + product_lost_ + of_dP.lost(i, j);
    const double sum = product_ * magnitude + again * (1 + product_), cast = dp_(dP, sum);
    const double pi = sum + cast, pv = product_deviation_ * magnitude,
                 pl = product_bias_ * magnitude + again + cast * (1 + of_dS_.all);
    // e^(th + EL) - 1 in two parts: the entry's own, and the row's common one.
    const double full = own + row.lse_growth;
    const SlopeError cap = softcap_ > 0 ? slope_error(slope, i, j) : SlopeError{};
    const double dS = raw * cap.slope, steepest = cap.slope + cap.proved;
    const double p_floor = p_underflow_ + flush_;
    e.P(i, j) = P;
    e.dS(i, j) = dS;
    if (softcap_ > 0) e.P_slope(i, j) = P * cap.slope;
    if (alike_dO_.size() > 0) e.alike(i, j) = steepest * P * pv * alike_dO_(row.number);
    e.row_terms(i) += 1;
    e.key_terms(j) += 1;
    e.logs[static_cast<std::size_t>(i)].include(
        {kLambda * of_row.deviation + of_row.linear + row.lse_likely, th + EL,
         square(of_row.deviation) + of_row.linear + row.lse_likely});

    e.dV.proved(i, j) = P * (full + up_ * (1 + full)) + p_floor;
    // The LSE that nobody saw: (U2), and (U3) below.
    e.dV.linear(i, j) = P * (of_key.linear + row.lse_unseen) + p_floor;
    e.dV.deviation(i, j) = P * (of_key.deviation + row.lse_rounding);
    e.inherited_P(i, j) = P * row.shift_growth;

    const double operations = 3 * u_ * (1 + full) * (raw + P * (pi + ED));
    // A flushed P is multiplied by dP - delta.
    const double flushed = 2 * flush_ * (1 + G + pi + ED) + flushed_dS_;
    const double floor = of_dS_.all_lost + flushed;
    const auto with_slope = [&](const SlopeError& by, double r) {
      return (by.slope + by.proved) * r + by.proved * raw;
    };
    // Both errors are of the same score.
    const auto spread = [&](const SlopeError& by, const SummedError& part,
                            const SummedError& of_slope) {
      const double most = by.slope + by.proved;
      return square(met * (most * part.deviation + of_slope.deviation)) + square(most * pv);
    };
    const auto over_rows = [&](const SlopeError& by, double ud, double lost, WeightedErrors& errors,
                               Matrix& known) {
      const double most = by.slope + by.proved;
      double r = with_slope(by, P * (G * full + (pi + ED) * (1 + full)) + operations);
      r += ud * (raw * by.slope + r);
      known(i, j) = P * by.slope *
                    (row.shift_growth * (dP - row.delta) - (1 + row.shift_growth) * row.inherited);
      errors.proved(i, j) = r + lost;
      errors.linear(i, j) = most * P *
                                (met * (of_key.linear + row.lse_unseen + 2 * u_) + pl +
                                 ud * inherited + row.delta_bias) +
                            by.over_rows.linear * P * met + lost;
      // A delta made of pairs errs by what this entry errs, among others.
      const double together = pairs_ ? 0 : row.delta_spread, apart = row.delta_spread - together;
      errors.deviation(i, j) =
          P * (std::sqrt(spread(by, of_key, by.over_rows) +
                         square(most) * (square(G * row.lse_rounding) + together)) +
               most * std::sqrt(apart));
    };
    over_rows(cap, of_dS_.all, floor, e.dK, e.inherited_dS);
    if (e.raw_dS.size() > 0) {
      e.raw_dS(i, j) = raw;
      over_rows({}, of_dS_.raw, of_dS_.raw_lost + flushed, e.raw, e.inherited_raw);
    }

    // dQ: errors common to the row stay signed and are added per column.
    double q = P * (G * own + pi * (1 + full) + ED * own) + operations;
    q = with_slope(cap, q) + cap.proved * (P * ED * row.lse_factor + row.lse_growth * raw);
    q += of_dS_.all * ((dS + P * ED) * row.lse_factor + q);
    e.dQ.proved(i, j) = q + floor;
    e.dQ.linear(i, j) =
        steepest * P * (met * of_row.linear + pl + 2 * u_ * (G + ED) + of_dS_.all * ED) +
        cap.over_keys.linear * P * met + floor;
    e.dQ.deviation(i, j) = P * std::sqrt(spread(cap, of_row, cap.over_keys));
  }

 private:
  // |(t + e)^2 - t^2| <= 2 |t e| + e^2, e the score's error over the softcap.
  SlopeError slope_error(double slope, Eigen::Index i, Eigen::Index j) const {
    const double t = 2 * std::sqrt(1 - slope) / softcap_;
    const double own = 2 * exponential_ + 3 * u_ + cast_slope_, score = error_.largest(i, j);
    const auto summed = [&](const SummedError& part) {
      const double bias = error_.bias(i, j) + error_.magnitude(i, j) * part.linear;
      const double deviation = error_.magnitude(i, j) * part.deviation;
      return SummedError{own + t * bias + square((kLambda * deviation + bias) / softcap_),
                         t * deviation};
    };
    return {slope, own + t * score + square(score / softcap_), summed(error_.over_keys),
            summed(error_.over_rows)};
  }

  const ScoreError& error_;
  WeightErrors weights_;
  bool pairs_;
  double u_, up_, p_underflow_;
  CastsOfDS of_dS_;
  CastOfDP dp_;
  double exponential_, flush_, softcap_;
  const Vector& alike_dO_;
  double product_ = 0, product_deviation_ = 0, product_bias_ = 0;
  double product_lost_ = 0, operands_ = 0;  // of subnormal sums; of rounding dO and V again
  double flushed_dS_ = 0;                   // what is flushed of dS after its first product
  double cast_slope_ = 0;                   // the softcap's derivative, rounded as scores are
};

void resize(Eigen::Index rows, Eigen::Index keys, EntryErrors& e) {
  for (auto* matrix : {&e.P, &e.dS, &e.inherited_P, &e.inherited_dS}) matrix->resize(rows, keys);
  for (auto* errors : {&e.dV, &e.dK, &e.dQ}) {
    for (auto* matrix : {&errors->proved, &errors->linear, &errors->deviation}) {
      matrix->resize(rows, keys);
    }
  }
  e.key_terms.setZero(keys);
}

void clear_entry(Eigen::Index i, Eigen::Index j, EntryErrors& e) {
  e.P(i, j) = e.dS(i, j) = e.inherited_P(i, j) = e.inherited_dS(i, j) = 0;
  for (auto* errors : {&e.dV, &e.dK, &e.dQ}) {
    errors->proved(i, j) = errors->linear(i, j) = errors->deviation(i, j) = 0;
  }
}

}  // namespace

CastsOfDS::CastsOfDS(const Numerics& numerics, const Problem& problem)
    : raw(numerics.p_roundoff), raw_lost(numerics.p_underflow) {
  const double u = numerics.score_roundoff;
  // Twice to one type is once.
  if (u > 0 && u != numerics.p_roundoff) {
    raw = (1 + raw) * (1 + u) - 1;
    raw_lost += numerics.score_underflow;
  }
  const double casts = u > 0 ? score_casts(problem).of_dS : 0;
  all = (1 + raw) * std::exp(casts * std::log1p(u)) - 1;
  // Before the scale or behind it.
  const double scale = std::min(1.0, std::abs(problem.scale()));
  all_lost = (raw_lost + casts * numerics.score_underflow) / (scale > 0 ? scale : 1);
}

WeightErrors::WeightErrors(const Numerics& numerics, const ScoreError& scores)
    : scores_(scores),
      u_(numerics.accumulator_roundoff),
      exponential_(exponential_error(numerics)) {}

WeightError WeightErrors::operator()(Eigen::Index i, Eigen::Index j, double s, double LSE,
                                     double EL, double factor) const {
  const double score = scores_.largest(i, j);
  // Two products and their difference, each rounded, of the computed score and the stored LSE.
  const double rounding =
      u_ * (3 * (std::abs(s) + score) + (2 + u_) * (std::abs(LSE) + EL)) + exponential_ + 2 * u_;
  // Without a bound, finite: its product with a weight of 0 is 0.
  constexpr double kNoBound = 0x1p900;
  WeightError error;
  const double magnitude = scores_.magnitude(i, j), biased = rounding + scores_.bias(i, j);
  const auto summed = [&](const SummedError& part) {
    return SummedError{std::min(biased + magnitude * part.linear, kNoBound),
                       magnitude * part.deviation};
  };
  error.over_keys = summed(scores_.over_keys);
  error.over_rows = summed(scores_.over_rows);
  error.proved = std::min(rounding + score, kNoBound);
  error.own = growth(error.proved, kLargestLogError) * factor;
  return error;
}

namespace {

// Per row, what delta loses of the products dO * O where an operand vanishes.
Vector vanished_products(const GradientInputs& in, const Matrix& O) {
  const Magnitudes of_dO = magnitudes(in.numerics, in.dO), of_O = magnitudes(in.numerics, O);
  Vector lost = Vector::Zero(O.rows());
  const auto add = [&](const Matrix& vanishing, const Matrix& other) {
    if (vanishing.size() > 0) lost += vanishing.cwiseProduct(other).rowwise().sum();
  };
  add(of_dO.vanishing, of_O.all);
  add(of_O.vanishing, of_dO.all);
  return lost;
}

}  // namespace

RowErrors row_errors(const GradientInputs& in, LseBase base, const Stored& stored,
                     const ErrorBound& unseen, const Forward& exact, const Tensor& delta_error) {
  const double u = in.numerics.accumulator_roundoff;
  const Eigen::Index count = in.dO.rows();
  const Matrix O = stacked_rows(exact.O.view(), in.group, 0, count);
  const Matrix stored_O = stacked_rows(stored.O, in.group, 0, count);
  const bool seen = stored.LSE.has_value();
  const auto of_stored = [&](const Tensor& bound) {
    return stacked_scalars(seen ? *stored.LSE : bound.view(), in.group);
  };
  // LSE itself where it is stored, else how far it may lie from the exact one.
  const Vector stored_lse = of_stored(unseen.deterministic),
               likely_lse = of_stored(unseen.probabilistic);
  const Vector reference_errors = stacked_scalars(delta_error.view(), in.group);
  const double terms = static_cast<double>(in.problem.head_dim_v), others = 2;
  const double product =
      std::max(gamma(terms + others, u), accumulation_error(in.numerics, terms, others));
  const Vector vanished = vanished_products(in, stored_O);
  RowErrors rows{stacked_scalars(exact.LSE.view(), in.group),
                 Vector(count),
                 Vector(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count),
                 Vector::Zero(count)};
  for (Eigen::Index r = 0; r < count; ++r) {
    rows.delta(r) = in.dO.row(r).dot(O.row(r)) - in.dLSE(r);
    if (in.numerics.delta == DeltaSource::outputs) {
      const double magnitude =
          in.dO.row(r).cwiseAbs().dot(stored_O.row(r).cwiseAbs()) + std::abs(in.dLSE(r));
      rows.inherited(r) = in.dO.row(r).dot(stored_O.row(r) - O.row(r));
      // Errors of the kernel, and of the exact result that the kernel is held against.
      const double reference = std::isfinite(reference_errors(r)) ? reference_errors(r) : 0;
      const double linear =
          std::abs(rows.inherited(r)) + 2 * u * std::abs(rows.delta(r)) + reference;
      const double lost = accumulation_loss(in.numerics, terms, terms, others) + vanished(r);
      rows.delta_proved(r) = linear + product * magnitude + lost;
      rows.delta_bias(r) = accumulation_bias(in.numerics, terms, others) * magnitude + lost;
      rows.delta_linear(r) = linear + rows.delta_bias(r);
      rows.delta_deviation(r) = accumulation_deviation(in.numerics, terms + others) * magnitude;
    }
    if (!std::isfinite(rows.lse(r))) {
      rows.lse_error(r) = 0;
      continue;
    }
    const double unit = base == LseBase::e ? 1 : std::numbers::ln2;
    const double roundings = base == LseBase::e ? 3 : 5;  // two more for the change of base
    const double rounding =
        roundings * u * std::abs(rows.lse(r)) + roundings * in.numerics.flushed_below;
    if (!seen) {
      // (U1), and as it is likely. Beyond the largest one nothing is proved, and all stays finite.
      constexpr double kNothingProved = 2 * kLargestLogError, kNoBound = 0x1p400;
      const double likely = unit * likely_lse(r);
      rows.lse_error(r) = std::min(unit * stored_lse(r) + rounding, kNothingProved);
      rows.lse_unseen(r) = likely <= kLargestLogError ? likely : kNoBound;
      rows.lse_rounding(r) = rounding;
      rows.lse_likely(r) = rows.lse_unseen(r) + rounding;
      continue;
    }
    const double shift = unit * stored_lse(r) - rows.lse(r);
    rows.lse_error(r) = rows.lse_likely(r) = std::abs(shift) + rounding;
    const bool known = std::abs(shift) <= kLargestLogError;
    rows.lse_shift(r) = known ? shift : 0.0;
    rows.lse_rounding(r) = known ? rounding : rows.lse_error(r);
  }
  return rows;
}

std::vector<KeyTile> key_tiles(const GradientInputs& in, const std::vector<std::int64_t>* keys) {
  constexpr std::int64_t kKeys = 72;  // no power of two, whose strides would crowd a cache's sets
  const auto wanted = keys != nullptr ? static_cast<std::int64_t>(keys->size()) : in.K.rows();
  const auto position = [&](std::int64_t output) {
    return keys != nullptr ? (*keys)[static_cast<std::size_t>(output)] : output;
  };
  std::vector<KeyTile> tiles;
  for (std::int64_t output = 0; output < wanted; output += tiles.back().count) {
    KeyTile tile;
    tile.output = output;
    tile.first = position(output);
    tile.count = 1;
    while (tile.count < kKeys && output + tile.count < wanted &&
           position(output + tile.count) == tile.first + tile.count) {
      ++tile.count;
    }
    tile.K = in.K.middleRows(tile.first, tile.count).transpose();
    tile.V = in.V.middleRows(tile.first, tile.count).transpose();
    tile.of_K = magnitudes(in.numerics, tile.K);
    tile.of_V = magnitudes(in.numerics, tile.V);
    tiles.push_back(std::move(tile));
  }
  return tiles;
}

RowBlock::RowBlock(const GradientInputs& in, std::int64_t first_row, std::int64_t rows)
    : first(first_row),
      count(rows),
      Q(in.problem.scale() * in.Q.middleRows(first, count)),
      dO(in.dO.middleRows(first, count)),
      of_Q(magnitudes(in.numerics, in.Q.middleRows(first, count), in.problem.scale())),
      of_dO(magnitudes(in.numerics, dO)) {
  of_Q *= std::abs(in.problem.scale());
}

TileProducts::TileProducts(const GradientInputs& in, const RowBlock& block, const KeyTile& tile)
    : scores(
          shaped_scores(in.problem, in.group, block.first, tile.first, product(block.Q, tile.K))),
      error(score_error(in.problem, in.numerics, in.group, block.first, tile.first,
                        product(block.of_Q, tile.of_K), scores)),
      dP(product(block.dO, tile.V)),
      of_dP(product(block.of_dO, tile.of_V)) {}

void begin_rows(const RowBlock& block, EntryErrors& entries) {
  entries.row_terms.setZero(block.count);
  entries.logs.assign(static_cast<std::size_t>(block.count), LogErrors{});
}

void entry_errors(const GradientInputs& in, const RowErrors& rows, const RowBlock& block,
                  const KeyTile& tile, EntryErrors& entries) {
  const auto& [exact, error, dP, of_dP] = TileProducts(in, block, tile);
  const EntryAnalysis analyse(in, error);
  resize(block.count, tile.count, entries);
  if (exact.slope.size() > 0) entries.P_slope.setZero(block.count, tile.count);
  if (in.alike_dO.size() > 0) entries.alike.setZero(block.count, tile.count);
  // dBias has dS before the softcap's derivative and before the scale.
  const CastsOfDS casts(in.numerics, in.problem);
  const bool scaled = casts.all != casts.raw || casts.all_lost != casts.raw_lost;
  if ((exact.slope.size() > 0 || scaled) && in.problem.bias.kind != Bias::Kind::none) {
    for (Matrix* matrix : {&entries.raw_dS, &entries.inherited_raw, &entries.raw.proved,
                           &entries.raw.linear, &entries.raw.deviation}) {
      matrix->setZero(block.count, tile.count);
    }
  }
  for (Eigen::Index i = 0; i < block.count; ++i) {
    const Eigen::Index r = block.first + i;
    // A row that sees NaN is NaN in every result it reaches; one that sees nothing reaches none.
    const bool reaches = std::isfinite(rows.lse(r));
    const double growth = std::expm1(std::min(rows.lse_error(r), kLargestLogError));
    const double inherited = std::isfinite(rows.inherited(r)) ? rows.inherited(r) : 0.0;
    const RowTerms row{r,
                       rows.lse(r),
                       rows.delta(r),
                       rows.lse_error(r),
                       rows.delta_proved(r),
                       growth,
                       1 + growth,
                       rows.lse_likely(r),
                       rows.lse_rounding(r),
                       rows.lse_unseen(r),
                       std::expm1(-rows.lse_shift(r)),
                       inherited,
                       rows.delta_bias(r),
                       square(rows.delta_deviation(r)) +
                           square(rows.delta_linear(r) - rows.delta_bias(r) - std::abs(inherited))};
    for (Eigen::Index j = 0; j < tile.count; ++j) {
      if (!reaches || !std::isfinite(exact.S(i, j))) {
        clear_entry(i, j, entries);
        continue;
      }
      const double slope = exact.slope.size() > 0 ? exact.slope(i, j) : 1;
      analyse(row, exact.S(i, j), dP(i, j), of_dP, slope, i, j, entries);
    }
  }
}

}  // namespace attest::reference
