#pragma once

#include "schedules/lists/blocks/listed_passes.hpp"

/// Backward schedules that visit the tiles of a list and of its transpose; letters as in
/// schedules/lists/blocks/block_forward.hpp.
namespace attest::sparse {

/// key_stationary over the lists of key blocks. A record says whether its tile is the first of its
/// queries, where dQ begins; query blocks without a tile have a list of their own.
///
/// Cost:   reads = 2 q dv + kc (dk + dv) + nz_q (dk + dv + 2) + (nz_q - ra) dk + L + 1 + e, e the
///         query blocks without a tile, writes = q + k (dk + dv) + nz_q dk + (q - ra) dk;
///         peak = max(2 j (dk + dv) + i (2 dk + dv + 2) + 2 i j + r + 2) over the tiles
///         [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: Dao 2023, Algorithm 2, over the blocks of Dao et al. 2022, Algorithm 5.
struct BlockKeyStationary {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "block_key_stationary";
  static constexpr const char* kDense = "key_stationary";
  static constexpr const char* kSummary =
      "key_stationary over transposed lists of tiles: dQ is read and written; index words count";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<cpu::Parameter<BlockKeyStationary>> parameters() {
    return {{"bq", &BlockKeyStationary::block_q, cpu::Extent::queries},
            {"bk", &BlockKeyStationary::block_k, cpu::Extent::keys},
            cpu::dlse_parameter(&BlockKeyStationary::dlse)};
  }
  std::int64_t block_q, block_k, dlse = cpu::kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const auto D = machine.workspace(head.Q.rows(), 1, "D");
    cpu::store_deltas(machine, head, dlse, D);
    const TileList list(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k, ListsOf::keys);
    machine.for_tiles(list.blocks(), block_k, [&](io::Range keys) {
      const ListedTiles tiles(machine, list, keys);
      auto dK = machine.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = machine.scratch(keys.count(), head.V.columns(), "dV");
      cpu::begin_sums(machine, head, keys, dK, dV);
      if (!tiles.empty()) add_block(machine, head, D, keys, tiles, dK, dV);
      machine.store(dK, head.dK.block(keys));
      machine.store(dV, head.dV.block(keys));
    });
    list.for_idle(machine, [&](io::Range queries) {
      auto zero = machine.scratch(queries.count(), head.Q.columns(), "dQ");
      machine.compute(cpu::Fill{0}, zero);
      machine.store(zero, head.dQ.block(queries));
    });
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;

 private:
  template <class M, class Tile>
  static void add_block(M& machine, const cpu::BackwardHead& head, const io::SlowMatrix& D_slow,
                        io::Range keys, const ListedTiles<M>& tiles, Tile& dK, Tile& dV) {
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    tiles.for_each([&](const TileList::Entry& tile) {
      const io::Range queries = tile.queries;
      const auto Q = machine.load(head.Q.block(queries), "Q");
      const auto dO = machine.load(head.dO.block(queries), "dO");
      const auto LSE = machine.load(head.LSE.block(queries), "LSE");
      const auto D = machine.load(D_slow.block(queries), "D");
      auto dQ = machine.scratch(queries.count(), head.Q.columns(), "dQ");
      if (tile.visit == TileList::Visit::first) {
        machine.compute(cpu::Fill{0}, dQ);
      } else {
        machine.load_into(dQ, head.dQ.block(queries));
      }
      auto P = machine.scratch(queries.count(), keys.count(), "P");
      auto dS = machine.scratch(queries.count(), keys.count(), "dS");
      cpu::compute_gradients(machine, P, dS, Q, K, V, dO, LSE, D, head.rule, queries, keys);
      machine.compute(cpu::Product{cpu::Form::first_transposed}, dV, P, dO);
      machine.compute(cpu::Product{cpu::Form::first_transposed}, dK, dS, Q);
      machine.compute(cpu::Product{}, dQ, dS, K);
      machine.store(dQ, head.dQ.block(queries));
    });
  }
};

/// two_pass over the list of tiles and over the transposed list of tiles of other extents.
///
/// Cost:   listed_query_pass and listed_key_pass with steps of 2 i j words
///         [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: ours.
struct BlockTwoPass {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "block_two_pass";
  static constexpr const char* kDense = "two_pass";
  static constexpr const char* kSummary =
      "two_pass over a list of tiles and its transpose; index words count";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<cpu::Parameter<BlockTwoPass>> parameters() {
    return {{"bq", &BlockTwoPass::block_q, cpu::Extent::queries},
            {"bk", &BlockTwoPass::block_k, cpu::Extent::keys},
            {"cq", &BlockTwoPass::pass_q, cpu::Extent::queries},
            {"ck", &BlockTwoPass::pass_k, cpu::Extent::keys},
            cpu::dlse_parameter(&BlockTwoPass::dlse)};
  }
  std::int64_t block_q, block_k;  // of the pass for dQ
  std::int64_t pass_q, pass_k;    // of the pass for dK and dV
  std::int64_t dlse = cpu::kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    const TileList rows(head.rule, q, k, block_q, block_k, ListsOf::queries);
    listed_query_pass(
        machine, head, D, dlse, rows, block_q,
        [&](auto& block, auto& dQ, const auto& Q, const auto& dO, const auto& LSE,
            const auto& delta, const auto& K, const auto& V, const TileList::Entry& tile) {
          auto P = block.scratch(tile.queries.count(), tile.keys.count(), "P");
          auto dS = block.scratch(tile.queries.count(), tile.keys.count(), "dS");
          cpu::compute_gradients(block, P, dS, Q, K, V, dO, LSE, delta, head.rule, tile.queries,
                                 tile.keys);
          block.compute(cpu::Product{}, dQ, dS, K);
        });
    const TileList columns(head.rule, q, k, pass_q, pass_k, ListsOf::keys);
    listed_key_pass(
        machine, head, D, columns, pass_k,
        [&](auto& block, auto& dK, auto& dV, const auto& K, const auto& V, const auto& Q,
            const auto& dO, const auto& LSE, const auto& delta, const TileList::Entry& tile) {
          auto P = block.scratch(tile.queries.count(), tile.keys.count(), "P");
          auto dS = block.scratch(tile.queries.count(), tile.keys.count(), "dS");
          cpu::compute_gradients(block, P, dS, Q, K, V, dO, LSE, delta, head.rule, tile.queries,
                                 tile.keys);
          block.compute(cpu::Product{cpu::Form::first_transposed}, dV, P, dO);
          block.compute(cpu::Product{cpu::Form::first_transposed}, dK, dS, Q);
        });
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;
};

}  // namespace attest::sparse
