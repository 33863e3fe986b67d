#pragma once

#include <algorithm>

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/lists/sparse_family.hpp"
#include "schedules/walks/lists/tile_list.hpp"
#include "schedules/walks/staircase.hpp"

namespace attest::schedules {

/// The scores of a listed tile, with its record.
template <io::Machine M>
struct ScoreTile {
  ScoreTile(M* machine, const io::SlowMatrix& record_words, const TileList::Entry& listed)
      : entry(listed),
        record(machine->load(record_words, record_words.name())),
        S(machine->scratch(listed.queries.count(), listed.keys.count(), "S")) {
    machine->compute(Fill{0}, S);
  }

  TileList::Entry entry;
  decltype(std::declval<M&>().load(std::declval<const io::SlowMatrix&>(), "")) record;
  decltype(std::declval<M&>().scratch(1, 1, "")) S;
};

/// Query blocks stay with the scores of listed tiles in place of rows of Q and O, whose columns
/// pass by, and with them the words of K and of V. Where not all tiles of a block fit they come in
/// pieces: O waits in slow memory between them, float32. Moves fewer words than block_flash2 where
/// queries see few keys. Letters as in schedules/walks/lists/tile_list.hpp.
///
/// Cost:   a the queries of a block once for each piece after its first: reads = (ra + a) dk + a dv
///         + nz_k (dk + dv) + L, writes = q (dv + 1) + a dv;
///         peak = max over the pieces of sum over their tiles (i j + r) + 3 i + 3, and i more after
///         the first  [schedules/lists/blocks/block_test "closed forms"]
/// Source: ours.
struct BlockHeldScores {
  using Head = ForwardHead;
  static constexpr const char* kName = "block_held_scores";
  static constexpr const char* kDense = "flash2";
  static constexpr const char* kSummary =
      "query blocks stay with the scores of listed keys, or pieces of them; columns of Q, K, V and "
      "O pass by";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static constexpr bool kFitsPattern = true;
  static std::vector<Parameter<BlockHeldScores>> parameters() {
    return {{"bq", &BlockHeldScores::block_q, Extent::queries},
            {"bk", &BlockHeldScores::block_k, Extent::keys},
            {"held", &BlockHeldScores::held, Extent::keys}};
  }
  std::int64_t block_q, block_k, held;  // extents of the tiles, how many a piece has at most

  /// Blocks of the pattern, divided or several, and as many tiles as fit: those that move the
  /// fewest words, 1 where nothing fits. Values that are not 0 stay.
  static void fit(BlockHeldScores& schedule, const attest_problem& problem,
                  io::FastMemory capacity);

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const auto before = machine.workspace(head.Q.rows(), head.V.columns(), "O before");
    const TileList list(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k, Stay::queries);
    machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range queries) {
      const ListedTiles tiles(block, list, queries);
      if (tiles.empty()) {
        return store_empty_rows(block, head.O.block(queries), head.LSE.block(queries), 1);
      }
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(StartRows{}, m, l);
      for (std::int64_t begin = 0, end = 0; begin < tiles.count(); begin = end) {
        end = begin + std::min(held, tiles.count() - begin);
        HeldRows<ScoreTile<std::remove_reference_t<decltype(block)>>> scores;
        tiles.hold({begin, end}, scores);
        const Place place{queries, begin == 0, end == tiles.count()};
        form_scores(block, head, queries, scores);
        add_piece(block, head, before, place, m, l, scores);
      }
    });
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  // A block of queries, and whether a piece is the first and the last of its tiles.
  struct Place {
    io::Range queries;
    bool first, last;
  };

  template <class M>
  static void form_scores(M& machine, const ForwardHead& head, io::Range queries,
                          HeldRows<ScoreTile<M>>& scores) {
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range column) {
      const auto Q = machine.load(head.Q.block(queries, column), "Q");
      scores.for_each([&](auto& tile) {
        const auto K = machine.stream(head.K.block(tile.entry.keys, column), "K");
        machine.compute(Product{Form::second_transposed}, tile.S, Q, K);
      });
    });
    scores.for_each([&](auto& tile) {
      machine.compute(FinishScores{head.rule, queries.begin, tile.entry.keys.begin}, tile.S);
    });
  }

  template <class M, class Tile>
  static void add_piece(M& machine, const ForwardHead& head, const io::MutableSlowMatrix& before,
                        const Place& place, Tile& m, Tile& l, HeldRows<ScoreTile<M>>& scores) {
    // Factors of the sums of the pieces before.
    auto kept = machine.scratch(place.first ? 0 : place.queries.count(), 1, "kept");
    machine.compute(CopyTile{}, kept, m);
    scores.for_each([&](auto& tile) { machine.compute(RaiseMaxima{}, m, tile.S); });
    machine.compute(Probabilities{}, kept, m);
    machine.compute(RescaleColumn{}, l, kept);
    scores.for_each([&](auto& tile) {
      machine.compute(Probabilities{}, tile.S, m);
      machine.compute(AddRowSums{}, l, tile.S);
    });
    if (place.last) {
      machine.compute(LogSumExp{}, m, l);
      machine.store(m, head.LSE.block(place.queries));
    }
    machine.for_tiles(all_columns(head.V), 1, [&](io::Range column) {
      auto O = machine.scratch(place.queries.count(), 1, "O");
      if (place.first) {
        machine.compute(Fill{0}, O);
      } else {
        machine.load_into(O, before.block(place.queries, column));
        machine.compute(RescaleColumn{}, O, kept);
      }
      scores.for_each([&](auto& tile) {
        const auto V = machine.stream(head.V.block(tile.entry.keys, column), "V");
        machine.compute(Product{}, O, tile.S, V);
      });
      if (place.last) machine.compute(DivideRows{}, O, l);
      machine.store(O, (place.last ? head.O : before).block(place.queries, column));
    });
  }
};

}  // namespace attest::schedules
