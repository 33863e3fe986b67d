#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/lists/blocks/compact_scores.hpp"

/// How the listed tiles of P = exp(scores - LSE) and dS = scale P o (dO V^T - D) come into slow
/// memory, for one block of queries. Cost of both ways: words read, and what a tile of i x j with a
/// record takes of fast memory while P and while dS are made.
namespace attest::schedules {

/// Where delta comes from: stored for all queries before anything else, or made beside a row of dO.
struct Deltas {
  io::MutableSlowMatrix stored;
  std::int64_t dlse;
};

/// Tile by tile, each by a product of either kind.
template <class Kind>
struct PairTiles {
  Kind product;

  template <io::Machine M>
  static void begin(M& machine, const BackwardHead& head, const Deltas& deltas) {
    store_deltas(machine, head, deltas.dlse, deltas.stored);
  }

  template <io::Machine M>
  void store_probabilities(M& machine, const BackwardHead& head, const TileList& list,
                           io::Range queries, const io::MutableSlowMatrix& P_slow) const {
    const ListedTiles tiles(machine, list, queries);
    const auto LSE = machine.load(head.LSE.block(queries), "LSE");
    tiles.for_each([&](const TileList::Entry& entry) {
      auto P = machine.scratch(queries.count(), entry.keys.count(), "P");
      machine.compute(Fill{0}, P);
      add_product(machine, product, P, head.Q.block(queries), head.K.block(entry.keys),
                  Form::second_transposed);
      machine.compute(FinishScores{head.rule, queries.begin, entry.keys.begin}, P);
      machine.compute(Probabilities{}, P, LSE);
      machine.store(P, tile_of(P_slow, entry));
    });
  }

  template <io::Machine M>
  void store_gradients(M& machine, const BackwardHead& head, const TileList& list,
                       io::Range queries, const io::MutableSlowMatrix& P_slow, const Deltas& deltas,
                       const io::MutableSlowMatrix& dS_slow) const {
    const ListedTiles tiles(machine, list, queries);
    const auto D = machine.load(deltas.stored.block(queries), "D");
    tiles.for_each_index([&](const TileList::Entry& entry) {
      auto dS = machine.scratch(queries.count(), entry.keys.count(), "dS");
      machine.compute(Fill{0}, dS);
      add_product(machine, product, dS, head.dO.block(queries), head.V.block(entry.keys),
                  Form::second_transposed);
      {
        const auto P = machine.stream(tile_of(P_slow, entry), "P");
        machine.compute(ScoreGradients{softmax_scale(head.rule)}, dS, P, D);
      }
      machine.store(dS, tile_of(dS_slow, entry));
    });
  }

  static io::Traffic begin_cost(const HeadShape& s, std::int64_t dlse) {
    return deltas_cost(s, dlse);
  }
  static io::Amount reads(const HeadShape& s, const WalkSums& sums, std::int64_t) {
    return s.in((s.dk + s.dv) * (sums.tile_queries + sums.tile_keys)) + HeadShape::real(2 * s.q);
  }
  io::Amount probabilities_peak(const HeadShape& s, io::Words i, io::Words j) const {
    return HeadShape::real(i + i * j) + product.operands({s.in(1), s.in(1)}, i, j, s.dk);
  }
  io::Amount gradients_peak(const HeadShape& s, io::Words i, io::Words j) const {
    return HeadShape::real(i + i * j) +
           io::larger(product.operands({s.in(1), s.in(1)}, i, j, s.dv), HeadShape::real(1));
  }
};

/// Column by column: the rows of Q, then of dO, stay while keys pass by word by word.
struct PairColumns {
  template <io::Machine M>
  static void begin(M&, const BackwardHead&, const Deltas&) {}

  template <io::Machine M>
  void store_probabilities(M& machine, const BackwardHead& head, const TileList& list,
                           io::Range queries, const io::MutableSlowMatrix& P_slow) const {
    const ListedTiles tiles(machine, list, queries);
    if (tiles.empty()) return;
    const auto Q = machine.load(head.Q.block(queries), "Q");
    const auto LSE = machine.load(head.LSE.block(queries), "LSE");
    tiles.for_each([&](const TileList::Entry& entry) {
      const auto pairs = tile_of(P_slow, entry);
      machine.for_tiles(all_columns(pairs), 1, [&](io::Range column) {
        const io::Range key{entry.keys.begin + column.begin, entry.keys.begin + column.end};
        auto P = machine.scratch(queries.count(), 1, "P");
        const auto K = machine.stream(head.K.block(key), "K");
        compute_scores(machine, P, Q, K, head.rule, queries, key);
        machine.compute(Probabilities{}, P, LSE);
        machine.store(P, pairs.block(all_rows(pairs), column));
      });
    });
  }

  template <io::Machine M>
  void store_gradients(M& machine, const BackwardHead& head, const TileList& list,
                       io::Range queries, const io::MutableSlowMatrix& P_slow, const Deltas& deltas,
                       const io::MutableSlowMatrix& dS_slow) const {
    const ListedTiles tiles(machine, list, queries);
    if (tiles.empty()) return;
    const auto dO = machine.load(head.dO.block(queries), "dO");
    auto D = machine.scratch(queries.count(), 1, "D");
    form_deltas(machine, head, deltas.dlse, queries, dO, D);
    tiles.for_each_index([&](const TileList::Entry& entry) {
      const auto pairs = tile_of(P_slow, entry), gradients = tile_of(dS_slow, entry);
      machine.for_tiles(all_columns(pairs), 1, [&](io::Range column) {
        const io::Range key{entry.keys.begin + column.begin, entry.keys.begin + column.end};
        auto dS = machine.scratch(queries.count(), 1, "dS");
        machine.compute(Fill{0}, dS);
        {
          const auto V = machine.stream(head.V.block(key), "V");
          machine.compute(Product{Form::second_transposed}, dS, dO, V);
        }
        const auto P = machine.stream(pairs.block(all_rows(pairs), column), "P");
        machine.compute(ScoreGradients{softmax_scale(head.rule)}, dS, P, D);
        machine.store(dS, gradients.block(all_rows(gradients), column));
      });
    });
  }

  static io::Traffic begin_cost(const HeadShape&, std::int64_t) { return {}; }
  static io::Amount reads(const HeadShape& s, const WalkSums& sums, std::int64_t dlse) {
    return s.in((s.dk + s.dv) * (sums.queries + sums.tile_keys) + sums.queries * s.dv) +
           HeadShape::real(sums.queries) + dlse_words(sums.queries, dlse);
  }
  static io::Amount probabilities_peak(const HeadShape& s, io::Words i, io::Words) {
    return s.in(i * s.dk + 1) + HeadShape::real(2 * i);
  }
  static io::Amount gradients_peak(const HeadShape& s, io::Words i, io::Words) {
    return s.in(i * s.dv) + HeadShape::real(2 * i + 1);
  }
};

}  // namespace attest::schedules
