#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/products.hpp"
#include "schedules/engine/score_step.hpp"

/// Steps that backward schedules share.
namespace attest::schedules {

/// The parameter dlse of every backward schedule: whether a gradient of LSE is given. It is printed
/// only when it is.
enum LseGradient : std::int64_t { kNoLseGradient, kLseGradient };

template <class S>
Parameter<S> dlse_parameter(std::int64_t S::*where) {
  Parameter<S> parameter("dlse", where, std::vector<const char*>{"none", "given"});
  parameter.print = Parameter<S>::Print::unless_first;
  return parameter;
}

/// D -= dLSE, word by word, where it is given.
template <class M, class Column>
void subtract_dlse(M& machine, const BackwardHead& head, std::int64_t dlse, io::Range queries,
                   Column& D) {
  if (dlse != kLseGradient) return;
  const auto words = machine.stream(head.dLSE.block(queries), "dLSE");
  machine.compute(SubtractRows{}, D, words);
}

/// D = rowsum(dO o O) - dLSE of queries whose dO stays, O passing word by word.
template <io::Machine M, class Loaded, class Column>
void form_deltas(M& machine, const BackwardHead& head, std::int64_t dlse, io::Range queries,
                 const Loaded& dO, Column& D) {
  machine.compute(Fill{0}, D);
  {
    const auto O = machine.stream(head.O.block(queries), "O");
    machine.compute(AddRowDots{}, D, dO, O);
  }
  subtract_dlse(machine, head, dlse, queries, D);
}

/// D = rowsum(dO o O) - dLSE, word by word.
///
/// Cost: reads = 2 q dv and q for dLSE, writes = q, peak = 3
template <io::Machine M>
void store_deltas(M& machine, const BackwardHead& head, std::int64_t dlse,
                  const io::MutableSlowMatrix& D) {
  machine.parallel_tiles(all_rows(D), 1, [&](auto& block, io::Range row) {
    auto sum = block.scratch(1, 1, "D");
    block.compute(Fill{0}, sum);
    {
      const auto dO = block.stream(head.dO.block(row), "dO");
      const auto O = block.stream(head.O.block(row), "O");
      block.compute(AddRowDots{}, sum, dO, O);
    }
    subtract_dlse(block, head, dlse, row, sum);
    block.store(sum, D.block(row));
  });
}

/// Words of dLSE of so many queries, read once.
inline io::Amount dlse_words(io::Words queries, std::int64_t dlse) {
  return dlse == kLseGradient ? HeadShape::real(queries) : io::Amount{};
}

inline io::Traffic deltas_cost(const HeadShape& s, std::int64_t dlse) {
  const io::Amount row =
      HeadShape::real(1) + io::larger(s.in(2), HeadShape::real(dlse == kLseGradient ? 1 : 0));
  return {s.in(2 * s.q * s.dv) + dlse_words(s.q, dlse), HeadShape::real(s.q),
          s.q > 0 ? row : io::Amount{}};
}

/// dK and dV of a block of keys begin.
template <class M, class Tile>
void begin_sums(M& machine, const BackwardHead& head, io::Range keys, Tile& dK, Tile& dV) {
  begin_sum(machine, dK, head.sums, head.dK_before, keys, all_columns(head.K));
  begin_sum(machine, dV, head.sums, head.dV_before, keys, all_columns(head.V));
}

/// Returns what begin_sums reads for all keys.
inline io::Amount sums_before(const BackwardHead& head, const HeadShape& s) {
  return HeadShape::real(head.sums == Sums::continued ? s.k * (s.dk + s.dv) : 0);
}

/// Computes a tile's S = Q K^T, without its rule, and dP = dO V^T.
template <io::Machine M, class Tile, class Loaded>
void compute_products(M& machine, Tile& S, Tile& dP, const Loaded& Q, const Loaded& K,
                      const Loaded& V, const Loaded& dO) {
  machine.compute(Fill{0}, S);
  machine.compute(Product{Form::second_transposed}, S, Q, K);
  machine.compute(Fill{0}, dP);
  machine.compute(Product{Form::second_transposed}, dP, dO, V);
}

/// Computes a tile's P = exp(S - LSE) and dS = scale P o (dO V^T - D), times the derivative of the
/// softcap.
template <io::Machine M, class Tile, class Loaded, class Column>
void compute_gradients(M& machine, Tile& P, Tile& dS, const Loaded& Q, const Loaded& K,
                       const Loaded& V, const Loaded& dO, const Loaded& LSE, const Column& D,
                       const ScoreRule& rule, io::Range queries, io::Range keys) {
  if (rule.problem->softcap > 0) {
    compute_products(machine, P, dS, Q, K, V, dO);
    return machine.compute(CappedGradients{rule, queries.begin, keys.begin}, dS, P, LSE, D);
  }
  compute_scores(machine, P, Q, K, rule, queries, keys);
  machine.compute(Probabilities{}, P, LSE);
  machine.compute(Fill{0}, dS);
  machine.compute(Product{Form::second_transposed}, dS, dO, V);
  machine.compute(ScoreGradients{softmax_scale(rule)}, dS, P, D);
}

/// The same with P = exp(S - m) / l.
template <io::Machine M, class Tile, class Loaded, class Column>
void compute_gradients_of(M& machine, Tile& P, Tile& dS, const Loaded& Q, const Loaded& K,
                          const Loaded& V, const Loaded& dO, const Loaded& m, const Loaded& l,
                          const Column& D, const ScoreRule& rule, io::Range queries,
                          io::Range keys) {
  if (rule.problem->softcap > 0) {
    compute_products(machine, P, dS, Q, K, V, dO);
    return machine.compute(CappedGradientsOf{rule, queries.begin, keys.begin}, dS, P, m, l, D);
  }
  compute_scores(machine, P, Q, K, rule, queries, keys);
  machine.compute(ProbabilitiesOf{}, P, m, l);
  machine.compute(Fill{0}, dS);
  machine.compute(Product{Form::second_transposed}, dS, dO, V);
  machine.compute(ScoreGradients{softmax_scale(rule)}, dS, P, D);
}

/// Zeros into a matrix, `rows` at a time.
template <io::Machine M>
void store_zeros(M& machine, const io::MutableSlowMatrix& matrix, io::Range range,
                 std::int64_t rows) {
  machine.parallel_tiles(range, rows, [&](auto& block, io::Range part) {
    auto zero = block.scratch(part.count(), matrix.columns(), matrix.name());
    block.compute(Fill{0}, zero);
    block.store(zero, matrix.block(part));
  });
}

/// body(row, column) for every word of some rows of a matrix.
template <io::Machine M, class Body>
void for_words(M& machine, io::Range rows, const io::SlowMatrix& matrix, const Body& body) {
  machine.for_tiles(rows, 1, [&](io::Range row) {
    machine.for_tiles(all_columns(matrix), 1, [&](io::Range column) { body(row, column); });
  });
}

/// store_zeros with one word of fast memory.
template <io::Machine M>
void store_zero_words(M& machine, const io::MutableSlowMatrix& matrix, io::Range rows) {
  for_words(machine, rows, matrix, [&](io::Range row, io::Range column) {
    auto zero = machine.scratch(1, 1, matrix.name());
    machine.compute(Fill{0}, zero);
    machine.store(zero, matrix.block(row, column));
  });
}

/// Sums of keys, dK or dV, and where they begin.
struct KeySums {
  io::MutableSlowMatrix to;
  Sums sums;
  io::SlowMatrix before;
};
inline KeySums sums_of_dK(const BackwardHead& head) { return {head.dK, head.sums, head.dK_before}; }
inline KeySums sums_of_dV(const BackwardHead& head) { return {head.dV, head.sums, head.dV_before}; }

/// Sums of keys that nobody sees, word by word.
template <io::Machine M>
void store_unseen(M& machine, const KeySums& target, io::Range keys) {
  for_words(machine, keys, target.to, [&](io::Range key, io::Range column) {
    auto sum = machine.scratch(1, 1, target.to.name());
    begin_sum(machine, sum, target.sums, target.before, key, column);
    machine.store(sum, target.to.block(key, column));
  });
}

}  // namespace attest::schedules
