#pragma once

#include <utility>

#include "schedules/engine/backward_step.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/walks/staircase.hpp"

/// Steps of backward schedules that hold pairs of queries and keys: a column of a matrix of the
/// keys stays with them while words of the queries' pass by. A piece is what is held at once:
///
///   keys                                       of all its pairs
///   for_each(body(StairTile, its number))      the pairs, by queries
///   begin_keys(machine, target, column, sums)  a column of the sums of its keys begins
namespace attest::schedules {

/// The pairs of some queries, of each from its first key to its last, in fast memory. The first
/// `old` of the queries have come before.
template <class M>
struct StairTile {
  StairTile(M& machine, const char* name, io::Range of, std::int64_t old_ones, Staircase cut)
      : queries(of),
        old(old_ones),
        stairs(std::move(cut)),
        pairs(machine.scratch(1, stairs.pairs(), name)) {}

  io::Range old_queries() const { return {queries.begin, queries.begin + old}; }
  io::Range new_queries() const { return {queries.begin + old, queries.end}; }

  io::Range queries;
  std::int64_t old;
  Staircase stairs;
  decltype(std::declval<M&>().scratch(1, 1, "")) pairs;
};

/// P = exp(scores - LSE), stored row by row where P_of(tile, its number, row) says.
template <class M, class Piece, class Where>
void form_probabilities(M& machine, const BackwardHead& head, Piece& piece, const Where& P_of) {
  piece.for_each([&](auto& tile, std::int64_t) { machine.compute(Fill{0}, tile.pairs); });
  machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
    const auto K = machine.load(head.K.block(piece.keys, column), "K");
    piece.for_each([&](auto& tile, std::int64_t) {
      const auto Q = machine.stream(head.Q.block(tile.queries, column), "Q");
      machine.compute(StairProducts{tile.stairs, Passing::queries}, tile.pairs, Q, K);
    });
  });
  piece.for_each([&](auto& tile, std::int64_t number) {
    machine.compute(StairScores{head.rule, tile.stairs}, tile.pairs);
    {
      const auto LSE = machine.stream(head.LSE.block(tile.queries), "LSE");
      machine.compute(StairProbabilities{tile.stairs}, tile.pairs, LSE);
    }
    for (std::int64_t row = 0; row < tile.queries.count(); ++row) {
      auto out = machine.stream_out(P_of(tile, number, row), "P");
      machine.compute(StairOut{tile.stairs, row}, tile.pairs, out);
    }
  });
}

/// dS = scale P o (dP - D), P passing from where form_probabilities left it. D is made beside dP
/// when a query comes for the first time.
template <class M, class Piece, class Where>
void form_gradients(M& machine, const BackwardHead& head, std::int64_t dlse, Piece& piece,
                    const io::MutableSlowMatrix& D_slow, const Where& P_of) {
  struct Column {
    Column(M* of, std::int64_t rows) : words(of->scratch(rows, 1, "D")) {}
    decltype(std::declval<M&>().scratch(1, 1, "")) words;
  };
  HeldRows<Column> D;
  piece.for_each([&](auto& tile, std::int64_t number) {
    D.add(&machine, tile.new_queries().count());
    machine.compute(Fill{0}, D[number].words);
    machine.compute(Fill{0}, tile.pairs);
  });
  machine.for_tiles(all_columns(head.V), 1, [&](io::Range column) {
    const auto V = machine.load(head.V.block(piece.keys, column), "V");
    piece.for_each([&](auto& tile, std::int64_t number) {
      const auto dO = machine.stream(head.dO.block(tile.queries, column), "dO");
      const auto O = machine.stream(head.O.block(tile.new_queries(), column), "O");
      machine.compute(StairProductsAndDots{tile.stairs, tile.old}, tile.pairs, dO, V,
                      D[number].words, O);
    });
  });
  piece.for_each([&](auto& tile, std::int64_t number) {
    auto& delta = D[number].words;
    subtract_dlse(machine, head, dlse, tile.new_queries(), delta);
    machine.store(delta, D_slow.block(tile.new_queries()));
    const auto before = machine.stream(D_slow.block(tile.old_queries()), "D");
    for (std::int64_t row = 0; row < tile.queries.count(); ++row) {
      const auto P = machine.stream(P_of(tile, number, row), "P");
      machine.compute(StairGradients{tile.stairs, row, softmax_scale(head.rule)}, tile.pairs, P,
                      before, delta);
    }
  });
}

/// dQ += dS K.
template <class M, class Piece>
void add_to_queries(M& machine, const BackwardHead& head, Piece& piece) {
  machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
    const auto K = machine.load(head.K.block(piece.keys, column), "K");
    piece.for_each([&](auto& tile, std::int64_t) {
      const auto add = [&](io::Range queries, const auto& begin) {
        machine.for_tiles(queries, 1, [&](io::Range query) {
          auto dQ = machine.scratch(1, 1, "dQ");
          begin(dQ, query);
          machine.compute(StairSum{tile.stairs, query.begin - tile.queries.begin}, dQ, tile.pairs,
                          K);
          machine.store(dQ, head.dQ.block(query, column));
        });
      };
      add(tile.old_queries(),
          [&](auto& dQ, io::Range query) { machine.load_into(dQ, head.dQ.block(query, column)); });
      add(tile.new_queries(), [&](auto& dQ, io::Range) { machine.compute(Fill{0}, dQ); });
    });
  });
}

/// target += pairs^T rows: dV of P and dO, dK of dS and Q.
template <class M, class Piece>
void add_to_keys(M& machine, Piece& piece, const io::SlowMatrix& rows, const KeySums& target) {
  machine.for_tiles(all_columns(rows), 1, [&](io::Range column) {
    auto sums = machine.scratch(piece.keys.count(), 1, target.to.name());
    piece.begin_keys(machine, target, column, sums);
    piece.for_each([&](auto& tile, std::int64_t) {
      const auto words = machine.stream(rows.block(tile.queries, column), rows.name());
      machine.compute(StairSums{tile.stairs, Passing::queries}, sums, tile.pairs, words);
    });
    machine.store(sums, target.to.block(piece.keys, column));
  });
}

}  // namespace attest::schedules
