#pragma once

#include <algorithm>

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/tile_map.hpp"

namespace attest::schedules {

/// O of one group of columns for queries that stay, and with the first group LSE; tiles of single
/// keys pass by word by word.
template <io::Machine M, class Queries, class Tiles>
void attend_columns(M& machine, const ForwardHead& head, const Queries& Q, io::Range queries,
                    const Tiles& tiles, io::Range group) {
  auto O = machine.scratch(queries.count(), group.count(), "O");
  auto m = machine.scratch(queries.count(), 1, "m");
  auto l = machine.scratch(queries.count(), 1, "l");
  auto s = machine.scratch(queries.count(), 1, "S");
  machine.compute(Fill{0}, O);
  machine.compute(StartRows{}, m, l);
  tiles.for_each([&](const PassingTile& tile) {
    {
      const auto K = machine.stream(head.K.block(tile.keys), "K");
      compute_scores(machine, s, Q, K, head.rule, queries, tile.keys);
    }
    update_softmax(machine, s, m, l, O);
    const auto V = machine.stream(head.V.block(tile.keys, group), "V");
    machine.compute(Product{}, O, s, V);
  });
  machine.compute(FinishRows{}, O, m, l);
  machine.store(O, head.O.block(queries, group));
  if (group.begin == 0) machine.store(m, head.LSE.block(queries));
}

/// Blocks of queries stay while the single keys of a walk pass by, for each group of columns anew.
template <io::Machine M, Walk W>
void attend_rows(M& machine, const ForwardHead& head, const W& walk, std::int64_t block_q,
                 std::int64_t columns) {
  machine.parallel_tiles(walk.blocks(), block_q, [&](auto& block, io::Range queries) {
    const auto tiles = walk.open(block, queries);
    if (tiles.empty()) {
      return store_empty_rows(block, head.O.block(queries), head.LSE.block(queries), columns);
    }
    const auto Q = block.load(head.Q.block(queries), "Q");
    const std::int64_t dv = head.V.columns(), first = std::min(columns, dv);
    attend_columns(block, head, Q, queries, tiles, {0, first});
    // A machine may take the other groups together: the first alone stores LSE.
    block.for_tiles(io::Range{first, dv}, columns, [&](io::Range group) {
      attend_columns(block, head, Q, queries, tiles, group);
    });
  });
}

/// Query blocks stay; K and V pass by word by word, one key at a time. V in groups of columns,
/// each with the scores computed again: for head_dim_v > head_dim_qk, fewer words than with all of
/// O resident.
///
/// Cost:   reads = ra dk + nz_k (G dk + dv), writes = q (dv + 1) with G = ceil(dv / columns), ra
/// the
///         queries of blocks that see a key, nz_k the keys they see in turn: without a mask
///         q dk + ceil(q/block_q) k (G dk + dv);
///         peak = i (dk + g + 3) + 1, i = min(block_q, q), g = min(columns, dv)
///         [schedules/forward_test]
/// Source: ours. Q is read once for all groups.
struct ColumnGroups {
  using Head = ForwardHead;
  static constexpr const char* kName = "column_groups";
  static constexpr const char* kSummary =
      "flash2_row with V in groups of columns, scores computed for each; for dv > d";
  static constexpr io::KernelClass kClass{.lse = io::LseOutput::written};
  static std::vector<Parameter<ColumnGroups>> parameters() {
    return {{"bq", &ColumnGroups::block_q, Extent::queries},
            {"bv", &ColumnGroups::columns, Extent::head_dim_v}};
  }
  std::int64_t block_q, columns;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    attend_rows(machine, head,
                TileMap(head.rule, head.Q.rows(), head.K.rows(), block_q, 1, Stay::queries),
                block_q, columns);
  }

  io::Traffic cost(const ForwardHead& head) const;
};

/// Query blocks stay with their sums; K and V pass by word by word (F1 of the theory): optimal with
/// its constant for 4 d^2 <= fast words, much smaller than K and V.
///
/// Cost:   reads = ra dk + nz_k (dk + dv), writes = q (dv + 1): without a mask
///         q dk + ceil(q/block_q) k (dk + dv); peak = i (dk + dv + 3) + 1
///         [schedules/forward_test]
/// Source: ours; Dao 2023, Algorithm 1, with key blocks of one key.
struct Flash2Row {
  using Head = ForwardHead;
  static constexpr const char* kName = "flash2_row";
  static constexpr const char* kSource = "this project's own, after Dao 2023, Algorithm 1";
  static constexpr const char* kSummary =
      "query blocks stay, single keys pass by word by word; optimal from 4 d^2 words on";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<Flash2Row>> parameters() {
    return {{"bq", &Flash2Row::block_q, Extent::queries}};
  }
  std::int64_t block_q;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    one_group(head).run(machine, head);
  }
  io::Traffic cost(const ForwardHead& head) const { return one_group(head).cost(head); }

 private:
  ColumnGroups one_group(const ForwardHead& head) const { return {block_q, head.V.columns()}; }
};

}  // namespace attest::schedules
