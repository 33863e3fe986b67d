#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/walks/row_order.hpp"
#include "schedules/walks/tile_list.hpp"

/// The two passes of a backward that writes nothing twice, over lists of tiles.
namespace attest::sparse {

using cpu::HeadShape;

/// D = rowsum(dO o O) - dLSE of queries whose dO stays, O passing word by word.
template <class M, class Loaded, class Column>
void store_row_sums(M& machine, const cpu::BackwardHead& head, const io::MutableSlowMatrix& D_slow,
                    std::int64_t dlse, io::Range queries, const Loaded& dO, Column& D) {
  cpu::form_deltas(machine, head, dlse, queries, dO, D);
  machine.store(D, D_slow.block(queries));
}

/// dQ and D = rowsum(dO o O) - dLSE: blocks of queries stay, the listed keys pass by.
/// step(machine, dQ, Q, dO, LSE, D, K, V, tile) adds a tile's part to dQ.
template <io::Machine M, class Step>
void listed_query_pass(M& machine, const cpu::BackwardHead& head,
                       const io::MutableSlowMatrix& D_slow, std::int64_t dlse, const TileList& list,
                       std::int64_t block_q, const Step& step) {
  machine.parallel_tiles(list.blocks(), block_q, [&](auto& block, io::Range queries) {
    const ListedTiles tiles(block, list, queries);
    const auto dO = block.load(head.dO.block(queries), "dO");
    auto D = block.scratch(queries.count(), 1, "D");
    store_row_sums(block, head, D_slow, dlse, queries, dO, D);
    auto dQ = block.scratch(queries.count(), head.Q.columns(), "dQ");
    block.compute(cpu::Fill{0}, dQ);
    if (!tiles.empty()) {
      const auto Q = block.load(head.Q.block(queries), "Q");
      const auto LSE = block.load(head.LSE.block(queries), "LSE");
      tiles.for_each([&](const TileList::Entry& tile) {
        const auto K = block.load(head.K.block(tile.keys), "K");
        const auto V = block.load(head.V.block(tile.keys), "V");
        step(block, dQ, Q, dO, LSE, D, K, V, tile);
      });
    }
    block.store(dQ, head.dQ.block(queries));
  });
}

/// dK and dV: blocks of keys stay, the listed queries pass by.
/// step(machine, dK, dV, K, V, Q, dO, LSE, D, tile) adds a tile's part.
template <io::Machine M, class Step>
void listed_key_pass(M& machine, const cpu::BackwardHead& head, const io::SlowMatrix& D_slow,
                     const TileList& list, std::int64_t block_k, const Step& step) {
  machine.parallel_tiles(list.blocks(), block_k, [&](auto& block, io::Range keys) {
    const ListedTiles tiles(block, list, keys);
    auto dK = block.scratch(keys.count(), head.K.columns(), "dK");
    auto dV = block.scratch(keys.count(), head.V.columns(), "dV");
    cpu::begin_sums(block, head, keys, dK, dV);
    if (!tiles.empty()) {
      const auto K = block.load(head.K.block(keys), "K");
      const auto V = block.load(head.V.block(keys), "V");
      tiles.for_each([&](const TileList::Entry& tile) {
        const auto Q = block.load(head.Q.block(tile.queries), "Q");
        const auto dO = block.load(head.dO.block(tile.queries), "dO");
        const auto LSE = block.load(head.LSE.block(tile.queries), "LSE");
        const auto D = block.load(D_slow.block(tile.queries), "D");
        step(block, dK, dV, K, V, Q, dO, LSE, D, tile);
      });
    }
    block.store(dK, head.dK.block(keys));
    block.store(dV, head.dV.block(keys));
  });
}

/// Words that a step takes for a tile of so many queries and keys.
using StepWords = io::Amount (*)(io::Words queries, io::Words keys);

/// Cost: reads = 2 q dv + ra (dk + 1) + nz_k (dk + dv) + L, writes = q + q dk,
///       peak = i (2 dk + dv + 2) + j (dk + dv) + step(i, j) + r + 2; of gathered_query_pass q
///       reads more and i (2 dk + dv + 3)
io::Traffic listed_query_pass_cost(const HeadShape& s, const TileList::Sums& sums,
                                   std::int64_t block_q, std::int64_t dlse, StepWords step,
                                   std::int64_t order = kNatural);

/// Cost: reads = kc (dk + dv) + nz_q (dk + dv + 2) + L, writes = k (dk + dv),
///       peak = 2 j (dk + dv) + i (dk + dv + 2) + step(i, j) + r + 2; of gathered_key_pass k reads
///       more and j (2 dk + 2 dv + 1)
io::Traffic listed_key_pass_cost(const cpu::BackwardHead& head, const TileList::Sums& sums,
                                 std::int64_t block_k, StepWords step,
                                 std::int64_t order = kNatural);

}  // namespace attest::sparse
