#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/tile_list.hpp"

/// Forward schedules that visit the tiles of a list. With lists L (of words: two offsets for each
/// block, for each tile its index and, of a partial one, its pairs as bits), nz_q and nz_k the
/// queries and keys of the listed tiles, ra and kc the queries and keys of blocks that have any.
namespace attest::sparse {

using cpu::HeadShape;

/// flash2 over a list: query blocks stay with their sums, the listed key blocks pass by.
///
/// Cost:   reads = ra dk + nz_k (dk + dv) + L, writes = q (dv + 1);
///         peak = max(i (dk + dv + 2) + i j + max(1, j max(dk, dv)) + r + 2) over the tiles, r the
///         words of its record; i dv + 2 of a block without one
///         [schedules/lists/blocks/block_test "closed forms"]
/// Source: Dao 2023, Algorithm 1, over the blocks of Dao et al. 2022, Algorithm 5.
struct BlockFlash2 {
  using Head = cpu::ForwardHead;
  static constexpr const char* kName = "block_flash2";
  static constexpr const char* kDense = "flash2";
  static constexpr const char* kSummary =
      "flash2 over a list of tiles: query blocks stay, listed key blocks pass by; index words "
      "count";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<cpu::Parameter<BlockFlash2>> parameters() {
    return {{"bq", &BlockFlash2::block_q, cpu::Extent::queries},
            {"bk", &BlockFlash2::block_k, cpu::Extent::keys}};
  }
  std::int64_t block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const cpu::ForwardHead& head) const {
    const TileList list(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k,
                        ListsOf::queries);
    machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range queries) {
      const ListedTiles tiles(block, list, queries);
      const auto O_block = head.O.block(queries), LSE_block = head.LSE.block(queries);
      if (tiles.empty()) {
        return cpu::store_empty_rows(block, O_block, LSE_block, head.O.columns());
      }
      const auto Q = block.load(head.Q.block(queries), "Q");
      auto O = block.scratch(queries.count(), head.V.columns(), "O");
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(cpu::Fill{0}, O);
      block.compute(cpu::StartRows{}, m, l);
      tiles.for_each([&](const TileList::Entry& tile) {
        auto S = block.scratch(queries.count(), tile.keys.count(), "S");
        {
          const auto K = block.load(head.K.block(tile.keys), "K");
          cpu::compute_scores(block, S, Q, K, head.rule, queries, tile.keys);
        }
        cpu::update_softmax(block, S, m, l, O);
        const auto V = block.load(head.V.block(tile.keys), "V");
        block.compute(cpu::Product{}, O, S, V);
      });
      block.compute(cpu::FinishRows{}, O, m, l);
      block.store(O, O_block);
      block.store(m, LSE_block);
    });
  }

  io::Traffic cost(const cpu::ForwardHead& head) const;
};

/// flash1 over the lists of key blocks: key blocks that are listed stay, their query blocks pass by
/// with O, m and l.
///
/// Cost:   reads = kc (dk + dv) + nz_q (dk + dv + 2) + L, writes = (q + nz_q)(dv + 2);
///         peak = max(j (dk + dv) + i (dk + dv + 2) + i j + 1 + r + 2) over the tiles, i dv while O
///         is filled with zeros  [schedules/lists/blocks/block_test "closed forms"]
/// Source: Dao et al. 2022, Algorithm 5 (differs: reads lists of what is there, where the paper
///         asks of every tile whether it is). LSE is not an output.
struct BlockFlash1 {
  using Head = cpu::ForwardHead;
  static constexpr const char* kName = "block_flash1";
  static constexpr const char* kDense = "flash1";
  static constexpr const char* kSummary =
      "block-sparse FlashAttention: listed key blocks stay, O, m and l pass; index words count";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once};
  static std::vector<cpu::Parameter<BlockFlash1>> parameters() {
    return {{"bq", &BlockFlash1::block_q, cpu::Extent::queries},
            {"bk", &BlockFlash1::block_k, cpu::Extent::keys}};
  }
  std::int64_t block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const cpu::ForwardHead& head) const {
    const std::int64_t q = head.Q.rows();
    const auto m_slow = machine.workspace(q, 1, "m"), l_slow = machine.workspace(q, 1, "l");
    machine.parallel_tiles(io::Range{0, q}, block_q, [&](auto& block, io::Range queries) {
      cpu::store_empty_rows(block, head.O.block(queries), m_slow.block(queries), head.V.columns());
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(cpu::Fill{0}, l);
      block.store(l, l_slow.block(queries));
    });
    const TileList list(head.rule, q, head.K.rows(), block_q, block_k, ListsOf::keys);
    machine.for_tiles(list.blocks(), block_k, [&](io::Range keys) {
      const ListedTiles tiles(machine, list, keys);
      if (tiles.empty()) return;
      const auto K = machine.load(head.K.block(keys), "K");
      const auto V = machine.load(head.V.block(keys), "V");
      tiles.for_each([&](const TileList::Entry& tile) {
        const io::Range queries = tile.queries;
        const auto Q = machine.load(head.Q.block(queries), "Q");
        auto O = machine.scratch(queries.count(), head.V.columns(), "O");
        auto m = machine.scratch(queries.count(), 1, "m");
        auto l = machine.scratch(queries.count(), 1, "l");
        machine.load_into(O, head.O.block(queries));
        machine.load_into(m, m_slow.block(queries));
        machine.load_into(l, l_slow.block(queries));
        auto S = machine.scratch(queries.count(), keys.count(), "S");
        cpu::compute_scores(machine, S, Q, K, head.rule, queries, keys);
        {
          auto word = machine.scratch(1, 1, "row maximum");
          machine.compute(cpu::UpdateNormalized{}, S, m, l, O, word);
        }
        machine.compute(cpu::Product{}, O, S, V);
        machine.store(O, head.O.block(queries));
        machine.store(m, m_slow.block(queries));
        machine.store(l, l_slow.block(queries));
      });
    });
  }

  io::Traffic cost(const cpu::ForwardHead& head) const;
};

}  // namespace attest::sparse
