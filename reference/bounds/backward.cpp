// Error bounds of dQ, dK, dV, dSinks and dBias: docs/theory/error-bounds/backward.md.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "reference/bounds/bounds.hpp"
#include "reference/bounds/steps/bias_sums.hpp"
#include "reference/bounds/steps/delta_errors.hpp"
#include "reference/bounds/steps/entry_errors.hpp"
#include "reference/bounds/steps/gradient_sums.hpp"
#include "reference/bounds/steps/roundoff.hpp"
#include "reference/bounds/steps/sink_sums.hpp"
#include "reference/bounds/steps/weights/alike_rows.hpp"
#include "reference/group.hpp"
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
  double of_columns = 0;  // deviation of what all columns have in common; the aggregate's alone
};

// Sums that are rounded to a low precision on the way (section "Sums in low precision"): what
// relative and absolute errors the roundings of so many terms add, one stage after the other.
struct LowPrecision {
  double relative = 0, absolute = 0;

  void round(double roundoff, double underflow, double roundings, double subnormal) {
    const double growth = 1 + roundings * roundoff;
    relative = (1 + relative) * growth - 1;
    absolute = (absolute + subnormal * underflow) * growth;
  }
  void round(double roundoff, double underflow, double times) {
    round(roundoff, underflow, times, times);
  }
};

LowPrecision running_dQ(const Numerics& numerics, double keys) {
  LowPrecision low;
  low.round(numerics.dq_roundoff, numerics.dq_underflow, keys);
  return low;
}

// Over the rows, then what a query head leaves, then the heads of a group.
LowPrecision running_dKV(const Numerics& numerics, double rows, double heads) {
  LowPrecision low;
  low.round(numerics.dkv_roundoff, numerics.dkv_underflow, rows);
  low.round(numerics.gqa_partial_roundoff, numerics.gqa_partial_underflow, 1, heads);
  low.round(numerics.gqa_sum_roundoff, numerics.gqa_sum_underflow, heads);
  return low;
}

// The common end of the three gradients: sums become bounds of one output element.
struct Finish {
  const Numerics& numerics;
  double scale;                             // |softmax_scale| for dQ and dK, 1 for dV
  double output;                            // relative error of the last operations
  std::function<LowPrecision(double)> low;  // of so many terms
  double operand = 0;                       // relative error of the operands of the sum
  std::vector<LogErrors> logs = {};         // of each row of the sums, or one for all

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
      const LowPrecision rounded = low(sums.terms(r));
      const double partial = rounded.relative;
      const double chain = accumulation_error(numerics, depth);
      // Before the scale or after it.
      const double in_sums = accumulation_loss(numerics, sums.terms(r) + kMerges, depth, 0);
      const double lost = (in_sums * (1 + partial) + rounded.absolute) * std::max(1.0, scale);
      const double additions = chain + operand * (1 + chain);
      // Roundings that are no small ones meet what else errs.
      const double together = numerics.sum_roundoff > 0 || numerics.operand_roundoff > 0
                                  ? (1 + chain) * (1 + operand)
                                  : 1.0;
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
        const double Ep =
            inflation * together * ((1 + partial) * kLambda * deviation + linear) + lost;
        bounds.proved(first + r, c) = proved;
        bounds.probable(first + r, c) =
            std::min(proved, Ep + output * (magnitude + Ep) + numerics.output_underflow);
        const double typical =
            beyond_first_order * (std::hypot(deviation, shared.of_columns) + linear) + lost;
        bounds.sigma(first + r, c) =
            typical + output * (magnitude + typical) + numerics.output_underflow;
      }
    }
  }
};

// Errors that the stored LSE and O leave in dV and dK: errors of rows that add up as they are.
struct InheritedErrors {
  Matrix dV, dK;  // (keys, columns)

  InheritedErrors(const GradientInputs& in, Eigen::Index keys)
      : dV(Matrix::Zero(keys, in.V.cols())), dK(Matrix::Zero(keys, in.K.cols())) {}

  void add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries) {
    add_transposed_product(entries.inherited_P, block.dO, dV.middleRows(tile.output, tile.count));
    add_transposed_product(entries.inherited_dS, block.Q, dK.middleRows(tile.output, tile.count));
  }
};

// Scaled already. `alike` and `of_columns` are deviations, or nothing.
auto known_in(const Matrix& errors, const Matrix& alike, const Matrix& of_columns = {}) {
  const auto at = [](const Matrix& of, Eigen::Index r, Eigen::Index c) {
    return of.size() > 0 ? of(r, c) : 0;
  };
  return [&, at](Eigen::Index r, Eigen::Index c) -> Common {
    const double deviation = at(alike, r, c);
    return {0, std::abs(errors(r, c)), deviation * deviation, 0, at(of_columns, r, c)};
  };
}

// Casts of P where rows of dO are equal: they meet one operand, so that all columns of dV, and all
// keys of equal weights, have one error.
class CastsOfEqualRows {
 public:
  CastsOfEqualRows(const GradientInputs& in, Eigen::Index keys) {
    if (in.alike_dO.size() == 0 || in.numerics.p_roundoff == 0) return;
    dO_ = in.numerics.p_roundoff * repeated_rows(in.dO).asDiagonal() * in.dO.cwiseAbs();
    dV_.setZero(keys, dO_.cols());
  }

  void add(const RowBlock& block, const KeyTile& tile, const EntryErrors& entries) {
    if (dV_.size() == 0) return;
    add_transposed_product(entries.P, dO_.middleRows(block.first, block.count),
                           dV_.middleRows(tile.output, tile.count));
  }

  const Matrix& dV() const { return dV_; }  // (keys, columns), or empty

 private:
  Matrix dO_, dV_;
};

// Contract of dSinks: stored as LSE is, of dS behind all of its casts.
Numerics of_sinks(Numerics numerics, const Problem& problem) {
  numerics.p_roundoff = CastsOfDS(numerics, problem).all;
  numerics.output_roundoff = numerics.accumulator_roundoff;
  numerics.output_underflow = numerics.accumulator_roundoff == 0x1p-53 ? 0 : 0x1p-150;
  return numerics;
}

GroupBounds bound_sinks(const Numerics& contract, SinkSums& of, const LogErrors& log) {
  const GradientSums sums = of.finish();
  GroupBounds bounds(sums.terms.size(), 1);
  const Finish finish{contract,
                      1,
                      3 * contract.accumulator_roundoff,
                      [](double) { return LowPrecision{}; },
                      operand_error(contract),
                      {log}};
  finish(sums, sums.absolute, 0, known_in(of.inherited(), {}), bounds);
  return bounds;
}

// Contract of dBias: stored in the type of the bias, of dS as it is cast at first. No depth is
// declared of sums over heads and batch entries.
Numerics of_bias(Numerics numerics, const Problem& problem) {
  numerics.p_roundoff = CastsOfDS(numerics, problem).raw;
  numerics.output_roundoff = unit_roundoff(problem.bias_dtype());
  numerics.output_underflow = underflow_unit(problem.bias_dtype());
  numerics.summation_depth = 0;
  return numerics;
}

GroupBounds bound_bias(const Numerics& contract, BiasSums& of, const LogErrors& log) {
  const GradientSums sums = of.finish();
  GroupBounds bounds(sums.terms.size(), 1);
  const Finish finish{contract,
                      1,
                      contract.output_roundoff + 3 * contract.accumulator_roundoff,
                      [](double) { return LowPrecision{}; },
                      operand_error(contract),
                      {log}};
  finish(sums, sums.absolute, 0, known_in(of.inherited(), of.alike()), bounds);
  return bounds;
}

struct GroupResult {
  GroupBounds dQ, dK, dV;
  std::optional<SinkEntries> dSinks = std::nullopt;  // with all rows
  std::optional<BiasEntries> dBias = std::nullopt;   // with all rows and keys
  LogErrors log = {};                                // of all rows
};

// Gradients of a group that are bounded: dQ of its rows, dK and dV of its keys or of some of them.
struct Wanted {
  bool rows = true, keys = true;
  const std::vector<std::int64_t>* chosen_keys = nullptr;  // the sink's among them
};

GroupResult bound_group(const GradientInputs& in, RowErrors& rows, const Backward& exact,
                        const Wanted& wanted) {
  const Numerics& numerics = in.numerics;
  const double u = numerics.accumulator_roundoff;
  const double scale = std::abs(in.problem.scale());
  const double gradient_output = numerics.output_roundoff + 3 * u + numerics.scaled_q_roundoff;
  const auto of_keys = [&](double keys) { return running_dQ(numerics, keys); };
  const auto of_rows = [&](double terms) {
    return running_dKV(numerics, terms, static_cast<double>(in.group.group_size));
  };
  const double again = operand_error(numerics);
  Finish finish_v{numerics, 1, numerics.output_roundoff + 2 * u, of_rows, again};
  // The entries of dS may meet the very Q that was scaled and rounded.
  Finish finish_k{numerics, scale, gradient_output, of_rows,
                  numerics.scaled_q_roundoff * (1 + again) + again};
  Finish finish_q{numerics, scale, gradient_output, of_keys, again};

  const auto operand = [&](const Matrix& of, double factor) {
    return Operand(of, magnitudes(numerics, of, factor));
  };
  const Operand Q = operand(in.Q, in.problem.scale()), K = operand(in.K, 1), dO = operand(in.dO, 1);
  const Matrix dQ = finite_part(stacked_rows(exact.dQ.view(), in.group, 0, in.group.rows()));
  const std::vector<KeyTile> tiles = key_tiles(in, wanted.chosen_keys);
  // A delta made of pairs takes every key.
  const bool some = wanted.chosen_keys != nullptr;
  const std::vector<KeyTile> every = some ? key_tiles(in) : std::vector<KeyTile>();
  const Eigen::Index query_rows = wanted.rows ? in.Q.rows() : 0,
                     keys = wanted.keys && !tiles.empty() ? tiles.back().output + tiles.back().count
                                                          : 0;
  Numerics of_dS = numerics;
  of_dS.p_roundoff = CastsOfDS(numerics, in.problem).all;
  SumsOfOutputs sums_v(numerics, dO, keys), sums_k(of_dS, Q, keys);
  SumsOfOutputs sums_q(of_dS, K, std::min<Eigen::Index>(kBlockRows, query_rows));
  GroupResult result{{query_rows, in.Q.cols()}, {keys, in.K.cols()}, {keys, in.V.cols()}};
  if (wanted.keys) result.dSinks.emplace(in);
  if (wanted.rows && wanted.keys) result.dBias.emplace(in);
  InheritedErrors inherited(in, keys);
  CastsOfEqualRows casts(in, keys);
  const bool alike = wanted.keys && in.alike_dO.size() > 0;
  Matrix alike_dK;
  if (alike) alike_dK.setZero(keys, in.K.cols());
  EntryErrors entries;
  Vector key_terms = Vector::Zero(keys);
  LogErrors of_all_rows;
  for (std::int64_t first = 0; first < in.Q.rows(); first += kBlockRows) {
    const RowBlock block(in, first, std::min(kBlockRows, in.Q.rows() - first));
    Matrix weighted = Matrix::Zero(block.count, in.K.cols());
    add_delta_errors(in, block, some ? every : tiles, rows);
    begin_rows(block, entries);
    for (const KeyTile& tile : tiles) {
      entry_errors(in, rows, block, tile, entries);
      if (wanted.rows) {
        sums_q.add(tile.first, entries.dS, entries.dQ);
        add_product(entries.delta_weights(), in.K.middleRows(tile.first, tile.count), weighted);
      }
      if (!wanted.keys) continue;
      sums_v.add_transposed(tile.output, first, entries.P, entries.dV);
      sums_k.add_transposed(tile.output, first, entries.dS, entries.dK);
      inherited.add(block, tile, entries);
      casts.add(block, tile, entries);
      result.dSinks->add(block, tile, entries);
      if (result.dBias) result.dBias->add(block, tile, entries);
      if (alike) {
        add_transposed_product(entries.alike, block.Q,
                               alike_dK.middleRows(tile.output, tile.count));
      }
      key_terms.segment(tile.output, tile.count) += entries.key_terms;
    }
    for (const LogErrors& log : entries.logs) of_all_rows.include(log);
    if (!wanted.rows) continue;
    weighted *= scale;
    const Matrix exact_block = dQ.middleRows(first, block.count);
    const auto common = [&](Eigen::Index r, Eigen::Index c) -> Common {
      const Eigen::Index row = first + r;
      const double EL = rows.lse_error(row), growth = std::expm1(std::min(EL, kLargestLogError));
      const double pk = std::abs(weighted(r, c)), dq = std::abs(exact_block(r, c));
      const double spread = rows.delta_deviation(row) * pk;
      Common of_row{rows.delta_proved(row) * pk * (1 + growth) + growth * dq,
                    // The LSE that nobody saw: (U4).
                    rows.delta_linear(row) * pk + rows.lse_likely(row) * dq};
      if (numerics.delta == DeltaSource::pairs) {
        of_row.correlated = spread;
      } else {
        of_row.variance = spread * spread;
      }
      return of_row;
    };
    finish_q.logs = entries.logs;
    finish_q(sums_q.finish(entries.row_terms), exact_block, first, common, result.dQ);
  }
  result.log = of_all_rows;
  if (!wanted.keys) return result;
  finish_v.logs = finish_k.logs = {of_all_rows};
  finish_v(sums_v.finish(key_terms),
           finite_part(key_rows(exact.dV.view(), in.group, wanted.chosen_keys)), 0,
           known_in(inherited.dV, {}, casts.dV()), result.dV);
  finish_k(sums_k.finish(key_terms),
           finite_part(key_rows(exact.dK.view(), in.group, wanted.chosen_keys)), 0,
           known_in(inherited.dK, alike_dK), result.dK);
  return result;
}

void fill(ErrorBound& bound, const GroupBounds& of) {
  std::copy_n(of.proved.data(), of.proved.size(), bound.deterministic.doubles());
  std::copy_n(of.probable.data(), of.probable.size(), bound.probabilistic.doubles());
  std::copy_n(of.sigma.data(), of.sigma.size(), bound.sigma.doubles());
}

}  // namespace

BackwardBounds backward_bounds(const Problem& problem, const Conventions& conventions,
                               const Numerics& declared, const TensorView& Q, const TensorView& K,
                               const TensorView& V, const Cotangents& cotangents,
                               const Stored& stored, const Forward& exact_forward,
                               const Backward& exact_backward, const Sample* sample) {
  require_covered(declared);
  const Numerics numerics = with_sums_apart(declared);
  ErrorBound unseen;  // of an LSE that is not stored
  if (!stored.LSE) {
    unseen = forward_bounds(problem, conventions, declared, Q, K, V, exact_forward).LSE;
  }
  const auto like = [](const char* name, const std::vector<Axis>& axes) {
    const auto zeros = [&] { return Tensor(name, DType::f64, axes); };
    return ErrorBound{zeros(), zeros(), zeros()};  // no copies: of a sample few pages are written
  };
  BackwardBounds bounds{
      like("bound of dQ", problem.q_axes()), like("bound of dK", problem.k_axes()),
      like("bound of dV", problem.v_axes()), like("bound of dSinks", problem.sinks_axes()),
      like("bound of dBias", problem.bias_axes())};
  PositionsInSequences chosen_keys;  // of a sample, with the sinks
  if (sample != nullptr) chosen_keys = sample->keys;
  for (std::size_t s = 0; s < chosen_keys.size() && problem.sinks != Sinks::none; ++s) {
    chosen_keys[s].push_back(problem.sequences()[s].k_length);
  }
  // A sample takes a group twice: its rows with all keys, and all rows with its keys.
  struct Task {
    Group group;
    Wanted wanted;
  };
  std::vector<Task> tasks;
  const std::vector<Group> groups = groups_of(problem);
  if (sample == nullptr) {
    for (const Group& group : groups) tasks.push_back({group, {}});
  } else {
    for (const Group& group : groups_of(problem, &sample->queries)) {
      tasks.push_back({group, {true, false}});
    }
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const std::size_t sequence = g / static_cast<std::size_t>(problem.num_heads_kv);
      tasks.push_back({groups[g], {false, true, &chosen_keys[sequence]}});
    }
  }
  std::vector<std::optional<SinkEntries>> entries_of_sinks(tasks.size());
  std::vector<std::optional<BiasEntries>> entries_of_bias(tasks.size());
  std::vector<LogErrors> logs(tasks.size());
  const bool threads = worth_threads(kProducts * score_operations(groups, problem.head_dim_qk));
#pragma omp parallel for schedule(dynamic) if (threads)
  for (std::size_t t = 0; t < tasks.size(); ++t) {
    const auto& [group, wanted] = tasks[t];
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
    RowErrors rows = row_errors(in, conventions.lse_base, stored, unseen, exact_forward,
                                exact_backward.delta_error);
    GroupResult result = bound_group(in, rows, exact_backward, wanted);
    if (wanted.rows) {
      scatter_rows(result.dQ.proved, group, 0, bounds.dQ.deterministic);
      scatter_rows(result.dQ.probable, group, 0, bounds.dQ.probabilistic);
      scatter_rows(result.dQ.sigma, group, 0, bounds.dQ.sigma);
    }
    // Named, for clang 14 lets no lambda have a structured binding as it is.
    const auto scatter_keys = [&group = group, &wanted = wanted](const GroupBounds& of,
                                                                 ErrorBound& to) {
      scatter_key_rows(of.proved, group, to.deterministic, wanted.chosen_keys);
      scatter_key_rows(of.probable, group, to.probabilistic, wanted.chosen_keys);
      scatter_key_rows(of.sigma, group, to.sigma, wanted.chosen_keys);
    };
    scatter_keys(result.dK, bounds.dK);
    scatter_keys(result.dV, bounds.dV);
    entries_of_sinks[t] = std::move(result.dSinks);
    entries_of_bias[t] = std::move(result.dBias);
    logs[t] = result.log;
  }
  LogErrors log;
  for (const LogErrors& of_task : logs) log.include(of_task);
  if (problem.sinks != Sinks::none) {
    const Numerics contract = of_sinks(numerics, problem);
    SinkSums sums(problem, contract);
    for (std::size_t t = 0; t < tasks.size(); ++t) {
      if (entries_of_sinks[t]) sums.add(tasks[t].group, *entries_of_sinks[t]);
    }
    fill(bounds.dSinks, bound_sinks(contract, sums, log));
  }
  if (problem.bias.kind == Bias::Kind::none || sample != nullptr) return bounds;
  const Numerics contract = of_bias(numerics, problem);
  BiasSums sums(problem, contract);
  for (std::size_t t = 0; t < tasks.size(); ++t) sums.add(tasks[t].group, *entries_of_bias[t]);
  fill(bounds.dBias, bound_bias(contract, sums, log));
  return bounds;
}

}  // namespace attest::reference
