#pragma once

#include <limits>

#include "io/machine/machine.hpp"
#include "schedules/engine/operations.hpp"

namespace attest::schedules {

/// S = the scores of the queries and keys of two tiles.
template <io::Machine M, class Tile, class Queries, class Keys>
void compute_scores(M& machine, Tile& S, const Queries& Q, const Keys& K, const ScoreRule& rule,
                    io::Range queries, io::Range keys) {
  machine.compute(Fill{0}, S);
  machine.compute(Product{Form::second_transposed}, S, Q, K);
  machine.compute(FinishScores{rule, queries.begin, keys.begin}, S);
}

/// Takes a tile of scores into a row's statistics and O; a word for the row's new maximum.
template <io::Machine M, class Tile>
void update_softmax(M& machine, Tile& S, Tile& m, Tile& l, Tile& O) {
  auto word = machine.scratch(1, 1, "row maximum");
  machine.compute(UpdateSoftmax{}, S, m, l, O, word);
}

/// Takes a tile of scores into a row's statistics; a word for the new maximum, then for the
/// exponentials, which are not kept.
template <io::Machine M, class Tile>
void update_statistics(M& machine, Tile& m, Tile& l, const Tile& S) {
  auto word = machine.scratch(1, 1, "row maximum");
  machine.compute(UpdateStatistics{}, m, l, S, word);
}

/// O = 0 and LSE = -inf of queries that see no key; O in groups of `columns`.
template <io::Machine M>
void store_empty_rows(M& machine, const io::MutableSlowMatrix& O, const io::MutableSlowMatrix& LSE,
                      std::int64_t columns) {
  machine.for_tiles(all_columns(O), columns, [&](io::Range group) {
    auto zero = machine.scratch(O.rows(), group.count(), "O");
    machine.compute(Fill{0}, zero);
    machine.store(zero, O.block(all_rows(O), group));
  });
  auto empty = machine.scratch(O.rows(), 1, "LSE");
  machine.compute(Fill{-std::numeric_limits<float>::infinity()}, empty);
  machine.store(empty, LSE);
}

}  // namespace attest::schedules
