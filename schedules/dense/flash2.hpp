#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/lists/tile_list.hpp"
#include "schedules/walks/tile_map.hpp"

namespace attest::schedules {

/// Query blocks stay with their sums, key blocks pass by; K leaves before V comes.
///
/// Cost:   reads = ra dk + nz_k (dk + dv) + L, writes = q (dv + 1) with ra the queries of blocks
///         that see a key, nz_k the keys of visited tiles and L the index words of the walk:
///         without a mask q dk + ceil(q/block_q) k (dk + dv); peak = max(i (dk + dv + 2) + i j +
///         max(1, j max(dk, dv)) + r) over the tiles, r the words of a record and the two of an
///         open list; i dv + 2 of a block without a tile [schedules/forward_test],
///         [schedules/lists/blocks/block_test "closed forms"]
/// Source: Dao 2023, Algorithm 1; over the blocks of Dao et al. 2022, Algorithm 5.
template <Walk W>
struct Flash2Over {
  using Head = ForwardHead;
  static constexpr const char* kDense = "flash2";
  static constexpr const char* kName = W::kLists ? "block_flash2" : kDense;
  static constexpr const char* kSource =
      W::kLists ? "Dao 2023, Algorithm 1, over the blocks of Dao et al. 2022, Algorithm 5"
                : "Dao 2023, Algorithm 1";
  static constexpr const char* kSummary =
      W::kLists ? "flash2 over a list of tiles: query blocks stay, listed key blocks pass by; "
                  "index words count"
                : "FlashAttention-2: query blocks stay with their sums, key blocks pass by";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<Flash2Over>> parameters() {
    return {{"bq", &Flash2Over::block_q, Extent::queries},
            {"bk", &Flash2Over::block_k, Extent::keys}};
  }
  std::int64_t block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const W walk(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k, Stay::queries);
    machine.parallel_tiles(walk.blocks(), block_q, [&](auto& block, io::Range queries) {
      const auto tiles = walk.open(block, queries);
      const auto O = head.O.block(queries), LSE = head.LSE.block(queries);
      if (tiles.empty()) return store_empty_rows(block, O, LSE, O.columns());
      attend(block, head, queries, tiles, O, LSE);
    });
  }

  /// One block of queries on some tiles.
  template <io::Machine M, class Tiles>
  static void attend(M& machine, const ForwardHead& head, io::Range queries, const Tiles& tiles,
                     const io::MutableSlowMatrix& O_block, const io::MutableSlowMatrix& LSE_block) {
    const auto Q = machine.load(head.Q.block(queries), "Q");
    auto O = machine.scratch(queries.count(), head.V.columns(), "O");
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    machine.compute(Fill{0}, O);
    machine.compute(StartRows{}, m, l);
    tiles.for_each([&](const PassingTile& tile) {
      auto S = machine.scratch(queries.count(), tile.keys.count(), "S");
      {
        const auto K = machine.load(head.K.block(tile.keys), "K");
        compute_scores(machine, S, Q, K, head.rule, queries, tile.keys);
      }
      update_softmax(machine, S, m, l, O);
      const auto V = machine.load(head.V.block(tile.keys), "V");
      machine.compute(Product{}, O, S, V);
    });
    machine.compute(FinishRows{}, O, m, l);
    machine.store(O, O_block);
    machine.store(m, LSE_block);
  }

  /// The most that attend() takes.
  static io::Amount peak(const HeadShape& s, const WalkSums& sums);

  io::Traffic cost(const ForwardHead& head) const;
};

using Flash2 = Flash2Over<TileMap>;

using BlockFlash2 = Flash2Over<TileList>;

}  // namespace attest::schedules
