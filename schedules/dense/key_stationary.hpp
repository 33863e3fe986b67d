#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/walks/lists/tile_list.hpp"
#include "schedules/walks/tile_map.hpp"

namespace attest::schedules {

/// K, V, dK, dV of a key block stay, query blocks pass by; dQ is made on the first tile a query
/// block meets, read and written on the later ones. A record of a list says which tile is the first
/// of its queries, and query blocks without a tile have a list of their own.
///
/// Cost:   reads = 2 q dv + kc (dk + dv) + nz_q (dk + dv + 2) + (nz_q - ra) dk + L,
///         writes = q + k (dk + dv) + nz_q dk + (q - ra) dk with kc the keys and ra the queries of
///         blocks that meet any, nz_q the queries of visited tiles, L the index words of the walk,
///         1 + e of them for e query blocks without a tile: without a mask kc = k, ra = q,
///         nz_q = ceil(k/block_k) q;
///         peak = max(2 j (dk + dv) + i (2 dk + dv + 2) + 2 i j + r) over the tiles, r the words of
///         a record and the two of an open list
///         [schedules/backward_test], [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: Dao 2023, Algorithm 2, trimmed: the paper also fills dQ with zeros and lists O in the
///         inner loop. D by rows, word by word. Over the blocks of Dao et al. 2022, Algorithm 5.
template <Walk W>
struct KeyStationaryOver {
  using Head = BackwardHead;
  static constexpr const char* kDense = "key_stationary";
  static constexpr const char* kName = W::kLists ? "block_key_stationary" : kDense;
  static constexpr const char* kSource =
      W::kLists ? "Dao 2023, Algorithm 2, trimmed, over the blocks of Dao et al. 2022, Algorithm 5"
                : "Dao 2023, Algorithm 2, trimmed";
  static constexpr const char* kSummary =
      W::kLists ? "key_stationary over transposed lists of tiles: dQ is read and written; index "
                  "words count"
                : "FlashAttention-2's backward: key blocks stay with dK and dV, dQ is read and "
                  "written";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<KeyStationaryOver>> parameters() {
    return {{"bq", &KeyStationaryOver::block_q, Extent::queries},
            {"bk", &KeyStationaryOver::block_k, Extent::keys},
            dlse_parameter(&KeyStationaryOver::dlse)};
  }
  std::int64_t block_q, block_k, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const auto D = machine.workspace(head.Q.rows(), 1, "D");
    store_deltas(machine, head, dlse, D);
    const W walk(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k, Stay::keys);
    machine.for_tiles(walk.blocks(), block_k, [&](io::Range keys) {
      const auto tiles = walk.open(machine, keys);
      auto dK = machine.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = machine.scratch(keys.count(), head.V.columns(), "dV");
      begin_sums(machine, head, keys, dK, dV);
      if (!tiles.empty()) add_block(machine, head, D, keys, tiles, dK, dV);
      machine.store(dK, head.dK.block(keys));
      machine.store(dV, head.dV.block(keys));
    });
    walk.for_idle(machine, [&](auto& block, io::Range queries) {
      auto zero = block.scratch(queries.count(), head.Q.columns(), "dQ");
      block.compute(Fill{0}, zero);
      block.store(zero, head.dQ.block(queries));
    });
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  template <class M, class Tiles, class Tile>
  static void add_block(M& machine, const BackwardHead& head, const io::SlowMatrix& D_slow,
                        io::Range keys, const Tiles& tiles, Tile& dK, Tile& dV) {
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    tiles.for_each([&](const PassingTile& tile) {
      const io::Range queries = tile.queries;
      const auto Q = machine.load(head.Q.block(queries), "Q");
      const auto dO = machine.load(head.dO.block(queries), "dO");
      const auto LSE = machine.load(head.LSE.block(queries), "LSE");
      const auto D = machine.load(D_slow.block(queries), "D");
      auto dQ = machine.scratch(queries.count(), head.Q.columns(), "dQ");
      if (tile.visit == Visit::first) {
        machine.compute(Fill{0}, dQ);
      } else {
        machine.load_into(dQ, head.dQ.block(queries));
      }
      auto P = machine.scratch(queries.count(), keys.count(), "P");
      auto dS = machine.scratch(queries.count(), keys.count(), "dS");
      compute_gradients(machine, P, dS, Q, K, V, dO, LSE, D, head.rule, queries, keys);
      machine.compute(Product{Form::first_transposed}, dV, P, dO);
      machine.compute(Product{Form::first_transposed}, dK, dS, Q);
      machine.compute(Product{}, dQ, dS, K);
      machine.store(dQ, head.dQ.block(queries));
    });
  }
};

using KeyStationary = KeyStationaryOver<TileMap>;

/// The backward of flash1: dQ, dK and dV begin as zeros in slow memory, D is made again for every
/// tile, P comes from m and l.
///
/// Cost:   reads = kc (dk + dv) + nz_q (2 dk + 2 dv + 2), writes = q dk + k (dk + dv) + nz_q dk +
///         kc (dk + dv); peak = 2 j (dk + dv) + i (2 dk + dv + 3) + max(i dv, 2 i j)
///         [schedules/backward_test]
///         A head that continues sums reads k (dk + dv) more and stores no zeros of dK and dV.
/// Source: Dao et al. 2022, Algorithm 4.
struct Flash1Backward {
  using Head = BackwardHead;
  static constexpr const char* kName = "flash1_bwd";
  static constexpr const char* kSource = "Dao et al. 2022, Algorithm 4";
  static constexpr const char* kSummary =
      "the backward of flash1: key blocks stay, dQ is read and written for every tile";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .saved = io::SavedOutputs::read};
  static constexpr bool kReadsSaved = true;
  static std::vector<Parameter<Flash1Backward>> parameters() {
    return {{"bq", &Flash1Backward::block_q, Extent::queries},
            {"bk", &Flash1Backward::block_k, Extent::keys},
            dlse_parameter(&Flash1Backward::dlse)};
  }
  std::int64_t block_q, block_k, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const TileMap map(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k, Stay::keys);
    store_zeros(machine, head.dQ, all_rows(head.dQ), block_q);
    if (head.sums == Sums::fresh) {
      store_zeros(machine, head.dK, all_rows(head.dK), block_k);
      store_zeros(machine, head.dV, all_rows(head.dV), block_k);
    }
    machine.for_tiles(map.blocks(), block_k, [&](io::Range keys) {
      const auto tiles = map.open(machine, keys);
      // Keys that no query sees have their zeros, or pass on what the heads before left.
      if (tiles.empty() && head.sums == Sums::fresh) return;
      auto dK = machine.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = machine.scratch(keys.count(), head.V.columns(), "dV");
      begin_sums(machine, head, keys, dK, dV);
      if (!tiles.empty()) add_block(machine, head, keys, tiles, dK, dV);
      machine.store(dK, head.dK.block(keys));
      machine.store(dV, head.dV.block(keys));
    });
  }

  io::Traffic cost(const BackwardHead& head) const;

 private:
  template <class M, class Tile>
  void add_block(M& machine, const BackwardHead& head, io::Range keys, const MappedTiles<M>& tiles,
                 Tile& dK, Tile& dV) const {
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    tiles.for_each([&](const PassingTile& tile) {
      add_tile(machine, head, tile.queries, keys, K, V, dK, dV);
    });
  }

  template <class M, class Loaded, class Tile>
  void add_tile(M& machine, const BackwardHead& head, io::Range queries, io::Range keys,
                const Loaded& K, const Loaded& V, Tile& dK, Tile& dV) const {
    const auto Q = machine.load(head.Q.block(queries), "Q");
    const auto dO = machine.load(head.dO.block(queries), "dO");
    const auto m = machine.load(head.m.block(queries), "m");
    const auto l = machine.load(head.l.block(queries), "l");
    auto dQ = machine.scratch(queries.count(), head.Q.columns(), "dQ");
    machine.load_into(dQ, head.dQ.block(queries));
    auto D = machine.scratch(queries.count(), 1, "D");
    machine.compute(Fill{0}, D);
    {
      const auto O = machine.load(head.O.block(queries), "O");
      machine.compute(AddRowDots{}, D, dO, O);
    }
    subtract_dlse(machine, head, dlse, queries, D);
    auto P = machine.scratch(queries.count(), keys.count(), "P");
    auto dS = machine.scratch(queries.count(), keys.count(), "dS");
    compute_gradients_of(machine, P, dS, Q, K, V, dO, m, l, D, head.rule, queries, keys);
    machine.compute(Product{Form::first_transposed}, dV, P, dO);
    machine.compute(Product{Form::first_transposed}, dK, dS, Q);
    machine.compute(Product{}, dQ, dS, K);
    machine.store(dQ, head.dQ.block(queries));
  }
};

using BlockKeyStationary = KeyStationaryOver<TileList>;

}  // namespace attest::schedules
