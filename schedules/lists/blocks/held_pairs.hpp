#pragma once

#include <algorithm>

#include "schedules/engine/backward_step.hpp"
#include "schedules/engine/parameter.hpp"
#include "schedules/engine/rolling_buffer.hpp"
#include "schedules/lists/blocks/unseen.hpp"
#include "schedules/lists/sparse_family.hpp"
#include "schedules/walks/lists/tile_list.hpp"

namespace attest::schedules {

/// A rectangle of pairs without one of its corners: queries and keys each whole (they meet all of
/// the others) or cut (they meet the whole ones alone).
struct CutTile {
  io::Range whole_queries, cut_queries, whole_keys, cut_keys;

  std::int64_t queries() const { return whole_queries.count() + cut_queries.count(); }
  std::int64_t keys() const { return whole_keys.count() + cut_keys.count(); }
  std::int64_t pairs() const { return queries() * keys() - cut_queries.count() * cut_keys.count(); }
};

/// How a listed tile of i x j pairs is cut into tiles of which `held` pairs stay at most: a grid,
/// in which four tiles that meet lose the corners where they do; what they lose is a tile again.
/// [schedules/lists/blocks/held_pairs_test "every pair once"]
struct CutGrid {
  std::int64_t side_q, side_k, held;

  /// Side of the square that a whole tile of the grid loses; less than either side.
  std::int64_t cut() const;

  struct Place {
    CutTile tile;
    bool first_of_queries, first_of_keys;  // of the listed tile, in the order of the visits
  };
  std::vector<Place> places(io::Range queries, io::Range keys) const;
};

/// The pairs of a tile stay while columns of Q, K, V, dO, dQ and words of dK and dV pass by: as P
/// for dV, then, when P has been stored, as dP and dS, P passing word by word, for dQ and dK. Every
/// word that such a schedule holds is a pair, so that it moves the fewest words where blocks of a
/// pattern have few keys and queries each: tiles of its blocks, cut to fit.
///
/// Cost:   R and J sums over all tiles of the grids of their queries and of their keys, and other
///         letters as in schedules/walks/lists/tile_list.hpp:
///         reads = R (3 dk + 2 dv + 2) + J (3 dk + 2 dv) + nz + ra (dv - dk - 1) - kc (dk + dv)
///         + L + 1 + e, e the query blocks without a tile,
///         writes = nz + R dk + J (dk + dv) + ra + (q - ra) dk + (k - kc)(dk + dv);
///         peak = max over the tiles of pairs + 2 queries + r + 3
///         [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: ours.
struct BlockHeldPairs {
  using Head = BackwardHead;
  static constexpr const char* kName = "block_held_pairs";
  static constexpr const char* kDense = "rolling_p";
  static constexpr const char* kSummary =
      "the pairs of a listed tile stay as P and dS, columns of all rows pass by; for few blocks";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true;
  static constexpr bool kFitsPattern = true;
  static std::vector<Parameter<BlockHeldPairs>> parameters() {
    return {{"bq", &BlockHeldPairs::block_q, Extent::queries},
            {"bk", &BlockHeldPairs::block_k, Extent::keys},
            {"iq", &BlockHeldPairs::side_q, Extent::queries},
            {"ik", &BlockHeldPairs::side_k, Extent::keys},
            {"held", &BlockHeldPairs::held, Extent::any},
            dlse_parameter(&BlockHeldPairs::dlse)};
  }
  std::int64_t block_q, block_k;  // of the listed tiles
  std::int64_t side_q, side_k;    // of the grid within
  std::int64_t held, dlse = kNoLseGradient;

  /// The pattern's blocks, and the grid within that moves the fewest words; 1 where nothing fits.
  /// Values that are not 0 stay.
  static void fit(BlockHeldPairs& schedule, const attest_problem& problem, io::FastMemory capacity);

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const Slow slow{head, machine.workspace(q, k, "P"), machine.workspace(q, 1, "D")};
    const TileList list(head.rule, q, k, block_q, block_k, Stay::keys);
    machine.for_tiles(list.blocks(), block_k, [&](io::Range keys) {
      const ListedTiles tiles(machine, list, keys);
      if (tiles.empty()) begin_unseen_keys(machine, head, keys);
      bool first_of_keys = true;
      tiles.for_each([&](const TileList::Entry& entry) {
        const bool first_of_queries = entry.visit == Visit::first;
        for (const CutGrid::Place& place : grid().places(entry.queries, entry.keys)) {
          add_tile(machine, slow, place.tile, first_of_queries && place.first_of_queries,
                   first_of_keys && place.first_of_keys);
        }
        first_of_keys = false;
      });
    });
    store_idle_queries(machine, head, list);
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  CutGrid grid() const { return {side_q, side_k, held}; }

  struct Slow {
    const BackwardHead& head;
    io::MutableSlowMatrix P, D;
  };

  template <class M>
  void add_tile(M& machine, const Slow& slow, const CutTile& tile, bool first_of_queries,
                bool first_of_keys) const {
    const BackwardHead& head = slow.head;
    Pairs<M> pairs(machine, tile);
    add_products(machine, pairs, head.Q, head.K, [](const auto&, const auto&, io::Range) {});
    form_probabilities(machine, slow, pairs);
    add_keys(machine, pairs, head.dO, sums_of_dV(head), first_of_keys);
    form_gradients(machine, slow, pairs, first_of_queries);
    add_queries(machine, pairs, head, first_of_queries);
    add_keys(machine, pairs, head.Q, sums_of_dK(head), first_of_keys);
  }

  // The pairs of one key.
  template <class M>
  struct Piece {
    Piece(M* machine, std::int64_t queries) : pairs(machine->scratch(queries, 1, "P")) {}
    decltype(std::declval<M&>().scratch(1, 1, "")) pairs;
  };

  // The pairs of a tile, key by key: its whole queries with every key, its cut queries with every
  // whole key.
  template <class M>
  struct Pairs {
    Pairs(M& machine, const CutTile& cut_tile)
        : tile(cut_tile),
          whole(tile.keys(), &machine, tile.whole_queries.count()),
          cut(tile.whole_keys.count(), &machine, tile.cut_queries.count()) {}

    // body(key, the pairs of whole queries, those of cut queries or nullptr)
    template <class Body>
    void for_keys(M& machine, const Body& body) {
      machine.for_tiles(tile.whole_keys, 1, [&](io::Range key) {
        const std::int64_t number = key.begin - tile.whole_keys.begin;
        body(key, whole[number].pairs, &cut[number].pairs);
      });
      machine.for_tiles(tile.cut_keys, 1, [&](io::Range key) {
        Piece<M>& piece = whole[tile.whole_keys.count() + key.begin - tile.cut_keys.begin];
        body(key, piece.pairs, static_cast<decltype(&piece.pairs)>(nullptr));
      });
    }

    // body(queries, key, their pairs)
    template <class Body>
    void for_pieces(M& machine, const Body& body) {
      for_keys(machine, [&](io::Range key, auto& of_whole, auto* of_cut) {
        body(tile.whole_queries, key, of_whole);
        if (of_cut != nullptr) body(tile.cut_queries, key, *of_cut);
      });
    }

    const CutTile& tile;
    HeldRows<Piece<M>> whole, cut;
  };

  // pairs += rows keys^T, column by column; also(whole, cut, column) sees those of the rows.
  template <class M, class Also>
  static void add_products(M& machine, Pairs<M>& pairs, const io::SlowMatrix& rows,
                           const io::SlowMatrix& keys, const Also& also) {
    pairs.for_pieces(machine,
                     [&](io::Range, io::Range, auto& piece) { machine.compute(Fill{0}, piece); });
    machine.for_tiles(all_columns(rows), 1, [&](io::Range column) {
      const auto whole = machine.load(rows.block(pairs.tile.whole_queries, column), rows.name());
      const auto cut = machine.load(rows.block(pairs.tile.cut_queries, column), rows.name());
      also(whole, cut, column);
      pairs.for_keys(machine, [&](io::Range key, auto& of_whole, auto* of_cut) {
        const auto word = machine.load(keys.block(key, column), keys.name());
        machine.compute(Product{}, of_whole, whole, word);
        if (of_cut != nullptr) machine.compute(Product{}, *of_cut, cut, word);
      });
    });
  }

  // P = exp(scores - LSE), and stores it.
  template <class M>
  static void form_probabilities(M& machine, const Slow& slow, Pairs<M>& pairs) {
    const auto whole = machine.load(slow.head.LSE.block(pairs.tile.whole_queries), "LSE");
    const auto cut = machine.load(slow.head.LSE.block(pairs.tile.cut_queries), "LSE");
    pairs.for_pieces(machine, [&](io::Range queries, io::Range key, auto& piece) {
      machine.compute(FinishScores{slow.head.rule, queries.begin, key.begin}, piece);
      const bool of_whole = queries.begin == pairs.tile.whole_queries.begin;
      machine.compute(Probabilities{}, piece, of_whole ? whole : cut);
      machine.store(piece, slow.P.block(queries, key));
    });
  }

  // dS = scale P o (dP - D), P passing word by word. D is made beside dP on the first visit.
  template <class M>
  void form_gradients(M& machine, const Slow& slow, Pairs<M>& pairs, bool first) const {
    const BackwardHead& head = slow.head;
    const CutTile& tile = pairs.tile;
    auto D = machine.scratch(tile.whole_queries.count(), 1, "D");
    auto cut_D = machine.scratch(tile.cut_queries.count(), 1, "D");
    if (first) {
      machine.compute(Fill{0}, D);
      machine.compute(Fill{0}, cut_D);
    } else {
      machine.load_into(D, slow.D.block(tile.whole_queries));
      machine.load_into(cut_D, slow.D.block(tile.cut_queries));
    }
    add_products(machine, pairs, head.dO, head.V,
                 [&](const auto& dO, const auto& cut_dO, io::Range column) {
                   if (!first) return;
                   add_dots(machine, D, dO, head.O.block(tile.whole_queries, column));
                   add_dots(machine, cut_D, cut_dO, head.O.block(tile.cut_queries, column));
                 });
    if (first) {
      subtract_dlse(machine, head, dlse, tile.whole_queries, D);
      subtract_dlse(machine, head, dlse, tile.cut_queries, cut_D);
      machine.store(D, slow.D.block(tile.whole_queries));
      machine.store(cut_D, slow.D.block(tile.cut_queries));
    }
    pairs.for_pieces(machine, [&](io::Range queries, io::Range key, auto& piece) {
      const auto P = machine.stream(slow.P.block(queries, key), "P");
      const bool of_whole = queries.begin == tile.whole_queries.begin;
      machine.compute(ScoreGradients{softmax_scale(head.rule)}, piece, P, of_whole ? D : cut_D);
    });
  }

  template <class M, class Column, class Loaded>
  static void add_dots(M& machine, Column& D, const Loaded& dO, const io::SlowMatrix& O_slow) {
    const auto O = machine.stream(O_slow, "O");
    machine.compute(AddRowDots{}, D, dO, O);
  }

  // dQ += dS K.
  template <class M>
  static void add_queries(M& machine, Pairs<M>& pairs, const BackwardHead& head, bool first) {
    const CutTile& tile = pairs.tile;
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
      auto whole = machine.scratch(tile.whole_queries.count(), 1, "dQ");
      auto cut = machine.scratch(tile.cut_queries.count(), 1, "dQ");
      if (first) {
        machine.compute(Fill{0}, whole);
        machine.compute(Fill{0}, cut);
      } else {
        machine.load_into(whole, head.dQ.block(tile.whole_queries, column));
        machine.load_into(cut, head.dQ.block(tile.cut_queries, column));
      }
      pairs.for_keys(machine, [&](io::Range key, const auto& of_whole, const auto* of_cut) {
        const auto word = machine.load(head.K.block(key, column), "K");
        machine.compute(Product{}, whole, of_whole, word);
        if (of_cut != nullptr) machine.compute(Product{}, cut, *of_cut, word);
      });
      machine.store(whole, head.dQ.block(tile.whole_queries, column));
      machine.store(cut, head.dQ.block(tile.cut_queries, column));
    });
  }

  // target += pairs^T rows: dV of P and dO, dK of dS and Q.
  template <class M>
  static void add_keys(M& machine, Pairs<M>& pairs, const io::SlowMatrix& rows,
                       const KeySums& target, bool first) {
    const CutTile& tile = pairs.tile;
    constexpr Product kTransposed{Form::first_transposed};
    machine.for_tiles(all_columns(rows), 1, [&](io::Range column) {
      const auto whole = machine.load(rows.block(tile.whole_queries, column), rows.name());
      const auto cut = machine.load(rows.block(tile.cut_queries, column), rows.name());
      pairs.for_keys(machine, [&](io::Range key, const auto& of_whole, const auto* of_cut) {
        auto sum = machine.scratch(1, 1, target.to.name());
        if (first) {
          begin_sum(machine, sum, target.sums, target.before, key, column);
        } else {
          machine.load_into(sum, target.to.block(key, column));
        }
        machine.compute(kTransposed, sum, of_whole, whole);
        if (of_cut != nullptr) machine.compute(kTransposed, sum, *of_cut, cut);
        machine.store(sum, target.to.block(key, column));
      });
    });
  }
};

}  // namespace attest::schedules
