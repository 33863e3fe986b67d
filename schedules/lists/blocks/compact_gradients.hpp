#pragma once

#include <algorithm>

#include "schedules/engine/backward_step.hpp"
#include "schedules/lists/blocks/compact_scores.hpp"
#include "schedules/walks/lists/listed_pairs.hpp"

/// Backward schedules for fast memory below d^2 words: the listed tiles of P, then of dS, are
/// formed and kept side by side; dQ walks the list, dK and dV the transposed list with a word for
/// the place of each tile.
namespace attest::schedules {

/// The phases: tiles of P and of dS as `pairs` makes them (schedules/walks/lists/listed_pairs.hpp),
/// then three products of either kind, dQ, dK and dV in groups of `columns`.
struct CompactGradients {
  std::int64_t block_q, block_k, columns, dlse;

  template <io::Machine M, class Pairs, class Kind>
  void run(M& machine, const BackwardHead& head, const Pairs& pairs, const Kind& product) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const Deltas deltas{machine.workspace(q, 1, "D"), dlse};
    pairs.begin(machine, head, deltas);
    const TileList rows(head.rule, q, k, block_q, block_k, Stay::queries);
    const auto P = machine.workspace(std::min(block_q, q), rows.columns(), "P");
    const auto dS = machine.workspace(std::min(block_q, q), rows.columns(), "dS");
    machine.parallel_tiles(rows.blocks(), block_q, [&](auto& block, io::Range queries) {
      pairs.store_probabilities(block, head, rows, queries, P);
    });
    machine.parallel_tiles(rows.blocks(), block_q, [&](auto& block, io::Range queries) {
      pairs.store_gradients(block, head, rows, queries, P, deltas, dS);
    });
    machine.parallel_tiles(rows.blocks(), block_q, [&](auto& block, io::Range queries) {
      add_queries(block, head, rows, queries, dS, product);
    });
    const TileList seen(head.rule, q, k, block_q, block_k, Stay::keys);
    machine.parallel_tiles(seen.blocks(), block_k, [&](auto& block, io::Range keys) {
      const ListedTiles tiles(block, seen, keys);
      add_keys(block, tiles, keys, {dS, head.Q, head.dK, head.sums, head.dK_before}, product);
      add_keys(block, tiles, keys, {P, head.dO, head.dV, head.sums, head.dV_before}, product);
    });
  }

  template <class Pairs, class Kind>
  io::Traffic cost(const BackwardHead& head, const Pairs& pairs, const Kind& product) const;

 private:
  // dQ = dS K.
  template <class M, class Kind>
  void add_queries(M& machine, const BackwardHead& head, const TileList& list, io::Range queries,
                   const io::MutableSlowMatrix& dS, const Kind& product) const {
    const ListedTiles tiles(machine, list, queries);
    machine.for_tiles(all_columns(head.Q), columns, [&](io::Range group) {
      auto dQ = machine.scratch(queries.count(), group.count(), "dQ");
      machine.compute(Fill{0}, dQ);
      tiles.for_each_index([&](const TileList::Entry& entry) {
        add_product(machine, product, dQ, tile_of(dS, entry), head.K.block(entry.keys, group),
                    Form::plain);
      });
      machine.store(dQ, head.dQ.block(queries, group));
    });
  }

  // sums = pairs^T rows: dK of dS and Q, dV of P and dO.
  struct KeyProduct {
    io::MutableSlowMatrix pairs;
    io::SlowMatrix rows;
    io::MutableSlowMatrix to;
    Sums sums;
    io::SlowMatrix before;
  };

  template <class M, class Kind>
  void add_keys(M& machine, const ListedTiles<M>& tiles, io::Range keys, const KeyProduct& task,
                const Kind& product) const {
    machine.for_tiles(all_columns(task.rows), columns, [&](io::Range group) {
      auto sum = machine.scratch(keys.count(), group.count(), task.to.name());
      begin_sum(machine, sum, task.sums, task.before, keys, group);
      tiles.for_each_placed([&](const TileList::Entry& entry) {
        add_product(machine, product, sum, tile_of(task.pairs, entry),
                    task.rows.block(entry.queries, group), Form::first_transposed);
      });
      machine.store(sum, task.to.block(keys, group));
    });
  }
};

/// square_tiled_bwd over a list of square tiles.
///
/// Cost:   letters as in schedules/lists/blocks/compact_scores.hpp, U the key blocks, Gk =
/// ceil(dk/b) and
///         Gv = ceil(dv/b): reads = 2 q dv (for D)
///         + (dk + dv)(nz_q + nz_k) + L + 2 q + nz + t + 4 T + nz_k dk + Gk (nz + t)
///         + nz_q (dk + dv) + (Gk + Gv)(nz + 2 t) + 2 U,
///         writes = q + 2 nz + q dk + k (dk + dv); peak at most
///         i j + (i + j) min(b, max(dk, dv)) + i + max(r, 1) + 4 over the tiles
///         [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: ours, over the tiles of a pattern.
struct BlockSquareTiledBackward {
  using Head = BackwardHead;
  static constexpr const char* kName = "block_square_tiled_bwd";
  static constexpr const char* kDense = "square_tiled_bwd";
  static constexpr const char* kSummary =
      "square_tiled_bwd over a list of tiles: only those of P and dS are formed and stored";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true;
  static std::vector<Parameter<BlockSquareTiledBackward>> parameters() {
    return {{"b", &BlockSquareTiledBackward::side, Extent::any},
            dlse_parameter(&BlockSquareTiledBackward::dlse)};
  }
  std::int64_t side, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    phases().run(machine, head, PairTiles<TiledProduct>{product()}, product());
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  CompactGradients phases() const { return {side, side, side, dlse}; }
  TiledProduct product() const { return {side, side, side}; }
};

/// rank1_tiled_bwd over a list: all five products add rank-1 tiles, a column of one operand and the
/// words of a row of the other pass by.
///
/// Cost:   reads and writes as block_square_tiled_bwd with groups of `od` columns of dQ, dK and dV;
///         peak = max over the tiles, and g = min(od, max(dk, dv)), of
///         i j + 2 i + r + 3, i g + i + 4 and j g + j + 5
///         [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: ours.
struct BlockRank1TiledBackward {
  using Head = BackwardHead;
  static constexpr const char* kName = "block_rank1_tiled_bwd";
  static constexpr const char* kDense = "rank1_tiled_bwd";
  static constexpr const char* kSummary =
      "rank1_tiled_bwd over a list of tiles: only those of P and dS are formed and stored";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true;
  static std::vector<Parameter<BlockRank1TiledBackward>> parameters() {
    return {{"bq", &BlockRank1TiledBackward::block_q, Extent::queries},
            {"bk", &BlockRank1TiledBackward::block_k, Extent::keys},
            {"od", &BlockRank1TiledBackward::columns, Extent::head_dim_qk},
            dlse_parameter(&BlockRank1TiledBackward::dlse)};
  }
  std::int64_t block_q, block_k, columns, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    phases().run(machine, head, PairTiles<Rank1Product>{product()}, product());
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  CompactGradients phases() const { return {block_q, block_k, columns, dlse}; }
  Rank1Product product() const { return {block_q, block_k}; }
};

/// query_stationary_p over a list: blocks of queries stay while columns of P, then of dS, are made
/// from single keys passing by; three products of rank-1 tiles.
///
/// Cost:   letters as above, with ra the queries of blocks that have a tile and groups of `od`
///         columns: reads = ra dv (for D)
///         + (dk + dv)(ra + nz_k) + L + ra + nz + t + 4 T + nz_k dk + Gk (nz + t)
///         + nz_q (dk + dv) + (Gk + Gv)(nz + 2 t) + 2 U,
///         writes = 2 nz + q dk + k (dk + dv); peak = max over the tiles, and
///         g = min(od, max(dk, dv)), of i (dk + 2) + 1 + r + 2, i (dv + 2) + 4, i g + i + 4 and
///         j g + j + 5  [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: ours.
struct BlockQueryStationaryP {
  using Head = BackwardHead;
  static constexpr const char* kName = "block_query_stationary_p";
  static constexpr const char* kDense = "query_stationary_p";
  static constexpr const char* kSummary =
      "query_stationary_p over a list of tiles: only those of P and dS are formed and stored";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kNoSoftcap = true;
  static std::vector<Parameter<BlockQueryStationaryP>> parameters() {
    return {{"bq", &BlockQueryStationaryP::block_q, Extent::queries},
            {"bk", &BlockQueryStationaryP::block_k, Extent::keys},
            {"od", &BlockQueryStationaryP::columns, Extent::head_dim_qk},
            dlse_parameter(&BlockQueryStationaryP::dlse)};
  }
  std::int64_t block_q, block_k, columns, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    phases().run(machine, head, PairColumns{}, product());
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  CompactGradients phases() const { return {block_q, block_k, columns, dlse}; }
  Rank1Product product() const { return {block_q, block_k}; }
};

}  // namespace attest::schedules
