// Error bounds of dQ, dK and dV: docs/theory/error-bounds.md, section "Backward".
#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/alike_rows.hpp"
#include "reference/bounds.hpp"
#include "reference/delta_errors.hpp"
#include "reference/entry_errors.hpp"
#include "reference/gradient_sums.hpp"
#include "reference/group.hpp"
#include "reference/roundoff.hpp"
#include "reference/threads.hpp"
#include "reference/vector_product.hpp"

namespace attest::reference {
namespace {

constexpr std::int64_t kProducts = 19;   // as large as that of the scores
constexpr std::int64_t kBlockRows = 64;  // a block's entries of a tile of keys stay near the cache

struct GroupBounds {
  Matrix proved, probable, sigma;

  GroupBounds(Eigen::Index rows, Eigen::Index columns) {
    for (auto* matrix : {&proved, &probable, &sigma}) *matrix = Matrix::Zero(rows, columns);
  }
};

// Errors common to a row of dQ, and those known in dK and dV; scaled like the gradient.
struct Common {
  double proved = 0, linear = 0, variance = 0;
  double correlated = 0;  // deviation of what the entries' own errors are part of
};

// Sums kept in low precision on the way (section "Backward"): each costs a roundoff of the terms'
// magnitudes, and an absolute error where it is subnormal.
struct LowPrecision {
  double roundoff = 0, underflow = 0;
  double roundings = 0, roundings_per_term = 0, sums = 0, sums_per_term = 0;

  double relative(double terms) const {
    return roundoff * (roundings + roundings_per_term * terms);
  }
  double absolute(double terms) const { return underflow * (sums + sums_per_term * terms); }
};

// The common end of the three gradients: sums become bounds of one output element.
struct Finish {
  const Numerics& numerics;
  double scale;   // |softmax_scale| for dQ and dK, 1 for dV
  double output;  // relative error of the last operations
  LowPrecision low;
  double operand = 0;                // relative error of the operand the entries meet
  std::vector<LogErrors> logs = {};  // of each row of the sums, or one for all

  // Row r of `sums` and of `exact` gives row `first + r` of the bounds; common(r, c) is Common.
  template <typename Shared>
  void operator()(const GradientSums& sums, const Matrix& exact, std::int64_t first,
                  const Shared& common, GroupBounds& bounds) const {
    const double u = numerics.accumulator_roundoff;
    constexpr double kMerges = 8;  // partial sums of tiles, splits and heads
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (Eigen::Index r = 0; r < exact.rows(); ++r) {
      if (sums.terms(r) == 0) continue;
      const LogErrors& log = logs[logs.size() == 1 ? 0 : static_cast<std::size_t>(r)];
      const double inflation = 1.001 * std::exp(std::min(2 * log.likely, kLargestLogError));
      const double beyond_first_order = std::exp(std::min(log.typical, kLargestLogError));
      const double depth = summation_depth(numerics, sums.terms(r)) + kMerges;
      const double partial = low.relative(sums.terms(r));
      // Before the scale or after it.
      const double lost = low.absolute(sums.terms(r)) * std::max(1.0, scale);
      const double chain = accumulation_error(numerics, depth);
      const double additions = chain + operand * (1 + chain);
      const double accumulation = additions + partial * (1 + additions);
      const double walk = accumulation_deviation(numerics, depth);
      const double drift = drift_of(sums.coherence(r), sums.terms(r), depth);
      const double bias = accumulation_bias(numerics, depth) + operand + partial;
      for (Eigen::Index c = 0; c < exact.cols(); ++c) {
        const Common shared = common(r, c);
        const double all = scale * sums.absolute(r, c), magnitude = std::abs(exact(r, c));
        const double errors = scale * sums.proved(r, c) + shared.proved;
        const double E = log.possible < kLargestLogError
                             ? errors + accumulation * (all + errors) + lost
                             : kInfinity;
        const double proved = E + output * (magnitude + E) + numerics.output_underflow;
        const double apart = std::sqrt(scale * scale * sums.variance(r, c) + shared.variance +
                                       walk * walk * all * all);
        const double deviation = apart + shared.correlated;
        const double linear = scale * sums.linear(r, c) + shared.linear + (bias + drift * u) * all;
        const double Ep = inflation * (kLambda * deviation + linear) + lost;
        bounds.proved(first + r, c) = proved;
        bounds.probable(first + r, c) =
            std::min(proved, Ep + output * (magnitude + Ep) + numerics.output_underflow);
        const double typical = beyond_first_order * (deviation + linear) + lost;
        bounds.sigma(first + r, c) =
            typical + output * (magnitude + typical) + numerics.output_underflow;
      }
    }
  }
};

// What the stored LSE and O leave in dV and dK: errors of rows that add up as they are.
struct InheritedErrors {
  Matrix dV, dK;  // (keys, columns)

  explicit InheritedErrors(const GradientInputs& in)
      : dV(Matrix::Zero(in.V.rows(), in.V.cols())), dK(Matrix::Zero(in.K.rows(), in.K.cols())) {}

  void add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries) {
    add_transposed_product(entries.inherited_P, block.dO, dV.middleRows(tile.first, tile.count));
    add_transposed_product(entries.inherited_dS, block.Q, dK.middleRows(tile.first, tile.count));
  }
};

// Scaled already. `alike` are deviations, or nothing.
auto known_in(const Matrix& errors, const Matrix& alike) {
  return [&](Eigen::Index r, Eigen::Index c) -> Common {
    const double deviation = alike.size() > 0 ? alike(r, c) : 0;
    return {0, std::abs(errors(r, c)), deviation * deviation};
  };
}

struct GroupResult {
  GroupBounds dQ, dK, dV;
};

GroupResult bound_group(const GradientInputs& in, RowErrors& rows, const Backward& exact) {
  const Numerics& numerics = in.numerics;
  const double u = numerics.accumulator_roundoff;
  const double scale = std::abs(in.problem.scale());
  const double gradient_output = numerics.output_roundoff + 3 * u + numerics.scaled_q_roundoff;
  LowPrecision partial{numerics.gqa_partial_roundoff, numerics.gqa_partial_underflow};
  partial.roundings = 1;
  partial.sums = static_cast<double>(in.group.group_size);
  LowPrecision running{numerics.dq_roundoff, numerics.dq_underflow};
  running.roundings_per_term = running.sums_per_term = 1;
  Finish finish_v{numerics, 1, numerics.output_roundoff + 2 * u, partial};
  // The entries of dS may meet the very Q that was scaled and rounded.
  Finish finish_k{numerics, scale, gradient_output, partial, numerics.scaled_q_roundoff};
  Finish finish_q{numerics, scale, gradient_output, running};

  const Operand Q(in.Q), K(in.K), dO(in.dO);
  const Matrix dQ = finite_part(stacked_rows(exact.dQ.view(), in.group, 0, in.group.rows()));
  SumsOfOutputs sums_v(numerics, dO, in.K.rows()), sums_k(numerics, Q, in.K.rows());
  SumsOfOutputs sums_q(numerics, K, std::min<Eigen::Index>(kBlockRows, in.Q.rows()));
  GroupResult result{
      {in.Q.rows(), in.Q.cols()}, {in.K.rows(), in.K.cols()}, {in.V.rows(), in.V.cols()}};
  InheritedErrors inherited(in);
  const bool alike = in.alike_dO.size() > 0;
  Matrix alike_dK;
  if (alike) alike_dK.setZero(in.K.rows(), in.K.cols());
  EntryErrors entries;
  Vector key_terms = Vector::Zero(in.K.rows());
  LogErrors of_all_rows;
  const std::vector<KeyTile> tiles = key_tiles(in);
  for (std::int64_t first = 0; first < in.Q.rows(); first += kBlockRows) {
    const RowBlock block(in, first, std::min(kBlockRows, in.Q.rows() - first));
    Matrix weighted = Matrix::Zero(block.count, in.K.cols());
    add_delta_errors(in, block, tiles, rows);
    begin_rows(block, entries);
    for (const KeyTile& tile : tiles) {
      entry_errors(in, rows, block, tile, entries);
      sums_v.add_transposed(tile.first, first, entries.P, entries.dV);
      sums_k.add_transposed(tile.first, first, entries.dS, entries.dK);
      sums_q.add(tile.first, entries.dS, entries.dQ);
      inherited.add(block, tile, entries);
      add_product(entries.delta_weights(), in.K.middleRows(tile.first, tile.count), weighted);
      if (alike) {
        add_transposed_product(entries.alike, block.Q, alike_dK.middleRows(tile.first, tile.count));
      }
      key_terms.segment(tile.first, tile.count) += entries.key_terms;
    }
    weighted *= scale;
    const Matrix exact_block = dQ.middleRows(first, block.count);
    const auto common = [&](Eigen::Index r, Eigen::Index c) -> Common {
      const Eigen::Index row = first + r;
      const double EL = rows.lse_error(row), growth = std::expm1(std::min(EL, kLargestLogError));
      const double pk = std::abs(weighted(r, c)), dq = std::abs(exact_block(r, c));
      const double spread = rows.delta_deviation(row) * pk;
      Common of_row{rows.delta_proved(row) * pk * (1 + growth) + growth * dq,
                    rows.delta_linear(row) * pk + EL * dq};
      if (numerics.delta == DeltaSource::pairs) {
        of_row.correlated = spread;
      } else {
        of_row.variance = spread * spread;
      }
      return of_row;
    };
    finish_q.logs = entries.logs;
    finish_q(sums_q.finish(entries.row_terms), exact_block, first, common, result.dQ);
    for (const LogErrors& log : entries.logs) of_all_rows.include(log);
  }
  finish_v.logs = finish_k.logs = {of_all_rows};
  finish_v(sums_v.finish(key_terms), finite_part(key_rows(exact.dV.view(), in.group)), 0,
           known_in(inherited.dV, {}), result.dV);
  finish_k(sums_k.finish(key_terms), finite_part(key_rows(exact.dK.view(), in.group)), 0,
           known_in(inherited.dK, alike_dK), result.dK);
  return result;
}

}  // namespace

BackwardBounds backward_bounds(const Problem& problem, const Conventions& conventions,
                               const Numerics& numerics, const TensorView& Q, const TensorView& K,
                               const TensorView& V, const Cotangents& cotangents,
                               const Stored& stored, const Forward& exact_forward,
                               const Backward& exact_backward) {
  require_covered(numerics);
  const auto like = [](const char* name, const std::vector<Axis>& axes) {
    const Tensor zeros(name, DType::f64, axes);
    return ErrorBound{zeros, zeros, zeros};
  };
  BackwardBounds bounds{like("bound of dQ", problem.q_axes()),
                        like("bound of dK", problem.k_axes()),
                        like("bound of dV", problem.v_axes())};
  const std::vector<Group> groups = groups_of(problem);
  const bool threads = worth_threads(kProducts * score_operations(groups, problem.head_dim_qk));
#pragma omp parallel for schedule(dynamic) if (threads)
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const Group& group = groups[g];
    const Vector dLSE = cotangents.dLSE != nullptr ? stacked_scalars(*cotangents.dLSE, group)
                                                   : Vector(Vector::Zero(group.rows()));
    const Matrix of_dO = finite_part(stacked_rows(cotangents.dO, group, 0, group.rows()));
    const GradientInputs in{problem,
                            numerics,
                            group,
                            finite_part(stacked_rows(Q, group, 0, group.rows())),
                            finite_part(key_rows(K, group)),
                            finite_part(key_rows(V, group)),
                            of_dO,
                            dLSE,
                            alike_rows(of_dO)};
    RowErrors rows =
        row_errors(in, conventions.lse_base, stored, exact_forward, exact_backward.delta_error);
    const GroupResult result = bound_group(in, rows, exact_backward);
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
