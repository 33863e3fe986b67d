#pragma once

#include "cpu/schedules/parameter.hpp"
#include "cpu/schedules/products.hpp"
#include "cpu/schedules/score_step.hpp"

/// Steps that backward schedules share.
namespace attest::cpu {

/// D = rowsum(dO o O), both word by word.
///
/// Cost: reads = 2 q dv, writes = q, peak = 3
template <io::Machine M>
void store_deltas(M& machine, const BackwardHead& head, const io::MutableSlowMatrix& D) {
  machine.parallel_tiles(all_rows(D), 1, [&](auto& block, io::Range row) {
    auto sum = block.scratch(1, 1, "D");
    block.compute(Fill{0}, sum);
    const auto dO = block.stream(head.dO.block(row), "dO");
    const auto O = block.stream(head.O.block(row), "O");
    block.compute(AddRowDots{}, sum, dO, O);
    block.store(sum, D.block(row));
  });
}

inline io::Traffic deltas_cost(const HeadShape& s) {
  const io::Amount row = HeadShape::real(1) + s.in(2);
  return {s.in(2 * s.q * s.dv), HeadShape::real(s.q), s.q > 0 ? row : io::Amount{}};
}

/// Of a tile: P = exp(S - LSE) and dS = scale P o (dO V^T - D).
template <io::Machine M, class Tile, class Loaded, class Column>
void compute_gradients(M& machine, Tile& P, Tile& dS, const Loaded& Q, const Loaded& K,
                       const Loaded& V, const Loaded& dO, const Loaded& LSE, const Column& D,
                       const ScoreRule& rule, io::Range queries, io::Range keys) {
  compute_scores(machine, P, Q, K, rule, queries, keys);
  machine.compute(Probabilities{}, P, LSE);
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

}  // namespace attest::cpu
