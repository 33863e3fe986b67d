#pragma once

#include <algorithm>

#include "schedules/engine/stair_steps.hpp"
#include "schedules/lists/blocks/unseen.hpp"
#include "schedules/lists/sparse_family.hpp"
#include "schedules/walks/lists/tile_list.hpp"

namespace attest::schedules {

/// Key blocks stay with the pairs of listed tiles, several at once, while columns of the keys'
/// matrices stay with them and words of the queries' pass by: as P for dV, then, when P has been
/// stored, as dP and dS, P passing word by word, for dQ and dK. Where not all tiles of a block fit
/// they come in pieces. Few words where keys are seen by few queries.
///
/// Cost:   J the keys of a block once for each of its pieces, z the pairs of a tile, of each query
///         from its first visible key to its last, Z those of all tiles, other letters as in
///         schedules/walks/lists/tile_list.hpp: reads = 2 nz_q (dk + dv + 1) - ra + (nz_q -
///         ra) dk + ra dv + J (2 dk + dv) + (J - kc)(dk + dv) + Z + L + 1 + e, e the query blocks
///         without a tile, writes = Z + nz_q dk + J (dk + dv) + ra + (q - ra) dk + (k - kc)(dk +
///         dv); peak = max over the pieces of sum over their tiles (z + r) + keys + f + 4, f the
///         queries that come for the first time [schedules/lists/blocks/block_backward_test "closed
///         forms"]
/// Source: ours.
struct BlockHeldKeys {
  using Head = BackwardHead;
  static constexpr const char* kName = "block_held_keys";
  static constexpr const char* kDense = "held_pairs";
  static constexpr const char* kSummary =
      "key blocks stay with the pairs of listed tiles, or pieces of them, as P and dS; columns of "
      "all matrices pass by";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true;
  static constexpr bool kFitsPattern = true;
  static std::vector<Parameter<BlockHeldKeys>> parameters() {
    return {{"bk", &BlockHeldKeys::block_k, Extent::keys},
            {"bq", &BlockHeldKeys::block_q, Extent::queries},
            {"held", &BlockHeldKeys::held, Extent::queries},
            dlse_parameter(&BlockHeldKeys::dlse)};
  }
  std::int64_t block_k, block_q, held;  // extents of the tiles, how many a piece has at most
  std::int64_t dlse = kNoLseGradient;

  /// As BlockHeldScores::fit, keys staying.
  static void fit(BlockHeldKeys& schedule, const attest_problem& problem, io::FastMemory capacity);

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const TileList list(head.rule, q, k, block_q, block_k, Stay::keys);
    const std::int64_t rows = std::min(held, io::tiles(q, block_q));
    const std::int64_t pairs = std::min(block_q, q) * std::min(block_k, k);
    const auto P = machine.workspace(rows, pairs, "P");  // of a piece, a row for each tile
    const auto D = machine.workspace(q, 1, "D");
    const auto P_of = [&](const StairTile<M>& tile, std::int64_t number, std::int64_t row) {
      const auto& stair = tile.stairs.rows()[static_cast<std::size_t>(row)];
      return P.block({number, number + 1}, {stair.place, stair.place + stair.keys.count()});
    };
    machine.for_tiles(list.blocks(), block_k, [&](io::Range keys) {
      const ListedTiles tiles(machine, list, keys);
      if (tiles.empty()) begin_unseen_keys(machine, head, keys);
      for (std::int64_t begin = 0, end = 0; begin < tiles.count(); begin = end) {
        end = begin + std::min(held, tiles.count() - begin);
        Piece<M> piece(tiles, {begin, end}, keys, head.rule);
        form_probabilities(machine, head, piece, P_of);
        add_to_keys(machine, piece, head.dO, sums_of_dV(head));
        form_gradients(machine, head, dlse, piece, D, P_of);
        add_to_queries(machine, head, piece);
        add_to_keys(machine, piece, head.Q, sums_of_dK(head));
      }
    });
    store_idle_queries(machine, head, list);
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  // The pairs of a listed tile and its record, which says who comes for the first time: all of its
  // queries, or none.
  template <class M>
  struct Held {
    Held(M* machine, const io::SlowMatrix& record_words, const TileList::Entry& listed,
         const ScoreRule& rule)
        : record(machine->load(record_words, record_words.name())),
          tile(*machine, "pairs", listed.queries,
               listed.visit == Visit::first ? 0 : listed.queries.count(),
               Staircase::of_mask(rule, listed.queries, listed.keys)) {}

    decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) record;
    StairTile<M> tile;
  };

  template <class M>
  class Piece {
   public:
    Piece(const ListedTiles<M>& list, io::Range numbers, io::Range of_keys, const ScoreRule& rule)
        : keys(of_keys), first_(numbers.begin == 0) {
      list.hold(numbers, tiles_, rule);
    }

    template <class Body>
    void for_each(const Body& body) {
      std::int64_t number = 0;
      tiles_.for_each([&](Held<M>& one) { body(one.tile, number++); });
    }

    template <class Tile>
    void begin_keys(M& machine, const KeySums& target, io::Range column, Tile& sums) const {
      if (first_) {
        begin_sum(machine, sums, target.sums, target.before, keys, column);
      } else {
        machine.load_into(sums, target.to.block(keys, column));
      }
    }

    const io::Range keys;

   private:
    bool first_;  // of the block's pieces
    HeldRows<Held<M>> tiles_;
  };
};

}  // namespace attest::schedules
