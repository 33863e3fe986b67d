#pragma once

#include <algorithm>

#include "cpu/schedules/backward_step.hpp"
#include "sparse/schedules/compact_scores.hpp"

namespace attest::sparse {

/// square_tiled_bwd over a list of square tiles: those of P, then of dS, are formed and kept side
/// by side; dQ walks the list, dK and dV the transposed list with a word for the place of each
/// tile.
///
/// Cost:   letters as in sparse/schedules/compact_scores.hpp, U the key blocks, Gk = ceil(dk/b) and
///         Gv = ceil(dv/b): reads = 2 q dv (for D) + (dk + dv)(nz_q + nz_k) + L + 2 q + nz + t + 4
///         T
///         + nz_k dk + Gk (nz + t) + nz_q (dk + dv) + (Gk + Gv)(nz + 2 t) + 2 U,
///         writes = q + 2 nz + q dk + k (dk + dv); peak at most
///         i j + (i + j) min(b, max(dk, dv)) + i + max(r, 1) + 4 over the tiles
///         [sparse/schedules/block_backward_test "closed forms"]
/// Source: ours, over the tiles of a pattern.
struct BlockSquareTiledBackward {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "block_square_tiled_bwd";
  static constexpr const char* kDense = "square_tiled_bwd";
  static constexpr const char* kSummary =
      "square_tiled_bwd over a list of tiles: only those of P and dS are formed and stored";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static constexpr bool kNoSoftcap = true;
  static std::vector<cpu::Parameter<BlockSquareTiledBackward>> parameters() {
    return {{"b", &BlockSquareTiledBackward::side, cpu::Extent::any},
            cpu::dlse_parameter(&BlockSquareTiledBackward::dlse)};
  }
  std::int64_t side, dlse = cpu::kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    cpu::store_deltas(machine, head, dlse, D);
    const TileList rows(head.rule, q, k, side, side, ListsOf::queries);
    const auto P = machine.workspace(std::min(side, q), rows.columns(), "P");
    const auto dS = machine.workspace(std::min(side, q), rows.columns(), "dS");
    machine.parallel_tiles(rows.blocks(), side, [&](auto& block, io::Range queries) {
      store_probabilities(block, head, rows, queries, P);
    });
    machine.parallel_tiles(rows.blocks(), side, [&](auto& block, io::Range queries) {
      store_gradients(block, head, rows, queries, P, D, dS);
    });
    machine.parallel_tiles(rows.blocks(), side, [&](auto& block, io::Range queries) {
      add_queries(block, head, rows, queries, dS);
    });
    const TileList columns(head.rule, q, k, side, side, ListsOf::keys);
    machine.parallel_tiles(columns.blocks(), side, [&](auto& block, io::Range keys) {
      const ListedTiles tiles(block, columns, keys);
      add_keys(block, head, tiles, keys, dS, head.Q, head.dK_before, head.dK);
      add_keys(block, head, tiles, keys, P, head.dO, head.dV_before, head.dV);
    });
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;

 private:
  // tile += A(queries) B(keys)^T, in blocks of columns.
  template <class M, class Tile>
  void add_product(M& machine, Tile& tile, const io::SlowMatrix& A, const io::SlowMatrix& B) const {
    machine.for_tiles(cpu::all_columns(A), side, [&](io::Range depth) {
      const auto a = machine.load(A.block(cpu::all_rows(A), depth), A.name());
      const auto b = machine.load(B.block(cpu::all_rows(B), depth), B.name());
      machine.compute(cpu::Product{cpu::Form::second_transposed}, tile, a, b);
    });
  }

  template <class M>
  void store_probabilities(M& machine, const cpu::BackwardHead& head, const TileList& list,
                           io::Range queries, const io::MutableSlowMatrix& P_slow) const {
    const ListedTiles tiles(machine, list, queries);
    const auto LSE = machine.load(head.LSE.block(queries), "LSE");
    tiles.for_each([&](const TileList::Entry& entry) {
      auto P = machine.scratch(queries.count(), entry.keys.count(), "P");
      machine.compute(cpu::Fill{0}, P);
      add_product(machine, P, head.Q.block(queries), head.K.block(entry.keys));
      machine.compute(cpu::FinishScores{head.rule, queries.begin, entry.keys.begin}, P);
      machine.compute(cpu::Probabilities{}, P, LSE);
      machine.store(P, tile_of(P_slow, entry));
    });
  }

  template <class M>
  void store_gradients(M& machine, const cpu::BackwardHead& head, const TileList& list,
                       io::Range queries, const io::MutableSlowMatrix& P_slow,
                       const io::SlowMatrix& D_slow, const io::MutableSlowMatrix& dS_slow) const {
    const ListedTiles tiles(machine, list, queries);
    const auto D = machine.load(D_slow.block(queries), "D");
    tiles.for_each_index([&](const TileList::Entry& entry) {
      auto dS = machine.scratch(queries.count(), entry.keys.count(), "dS");
      machine.compute(cpu::Fill{0}, dS);
      add_product(machine, dS, head.dO.block(queries), head.V.block(entry.keys));
      {
        const auto P = machine.stream(tile_of(P_slow, entry), "P");
        machine.compute(cpu::ScoreGradients{cpu::softmax_scale(head.rule)}, dS, P, D);
      }
      machine.store(dS, tile_of(dS_slow, entry));
    });
  }

  // dQ = dS K, in groups of columns.
  template <class M>
  void add_queries(M& machine, const cpu::BackwardHead& head, const TileList& list,
                   io::Range queries, const io::MutableSlowMatrix& dS_slow) const {
    const ListedTiles tiles(machine, list, queries);
    machine.for_tiles(cpu::all_columns(head.Q), side, [&](io::Range group) {
      auto dQ = machine.scratch(queries.count(), group.count(), "dQ");
      machine.compute(cpu::Fill{0}, dQ);
      tiles.for_each_index([&](const TileList::Entry& entry) {
        const auto dS = machine.load(tile_of(dS_slow, entry), "dS");
        const auto K = machine.load(head.K.block(entry.keys, group), "K");
        machine.compute(cpu::Product{}, dQ, dS, K);
      });
      machine.store(dQ, head.dQ.block(queries, group));
    });
  }

  // dK = dS^T Q or dV = P^T dO, in groups of columns.
  template <class M>
  void add_keys(M& machine, const cpu::BackwardHead& head, const ListedTiles<M>& tiles,
                io::Range keys, const io::MutableSlowMatrix& pairs, const io::SlowMatrix& rows,
                const io::SlowMatrix& before, const io::MutableSlowMatrix& sums) const {
    machine.for_tiles(cpu::all_columns(rows), side, [&](io::Range group) {
      auto sum = machine.scratch(keys.count(), group.count(), sums.name());
      cpu::begin_sum(machine, sum, head.sums, before, keys, group);
      tiles.for_each_placed([&](const TileList::Entry& entry) {
        const auto tile = machine.load(tile_of(pairs, entry), pairs.name());
        const auto words = machine.load(rows.block(entry.queries, group), rows.name());
        machine.compute(cpu::Product{cpu::Form::first_transposed}, sum, tile, words);
      });
      machine.store(sum, sums.block(keys, group));
    });
  }
};

}  // namespace attest::sparse
