#pragma once

#include "schedules/engine/backward_step.hpp"
#include "schedules/walks/walk.hpp"

/// The two passes of a backward that writes nothing twice, over a walk.
namespace attest::schedules {

/// D = rowsum(dO o O) - dLSE of queries whose dO stays, O passing word by word.
template <class M, class Loaded, class Column>
void store_row_sums(M& machine, const BackwardHead& head, const io::MutableSlowMatrix& D_slow,
                    std::int64_t dlse, io::Range queries, const Loaded& dO, Column& D) {
  form_deltas(machine, head, dlse, queries, dO, D);
  machine.store(D, D_slow.block(queries));
}

/// dQ and D = rowsum(dO o O) - dLSE: blocks of queries stay, keys pass by.
/// step(machine, dQ, Q, dO, LSE, D, K, V, tile) adds a tile's part to dQ.
template <io::Machine M, Walk W, class Step>
void query_pass(M& machine, const BackwardHead& head, const io::MutableSlowMatrix& D_slow,
                std::int64_t dlse, const W& walk, std::int64_t block_q, const Step& step) {
  machine.parallel_tiles(walk.blocks(), block_q, [&](auto& block, io::Range queries) {
    const auto tiles = walk.open(block, queries);
    const auto dO = block.load(head.dO.block(queries), "dO");
    auto D = block.scratch(queries.count(), 1, "D");
    store_row_sums(block, head, D_slow, dlse, queries, dO, D);
    auto dQ = block.scratch(queries.count(), head.Q.columns(), "dQ");
    block.compute(Fill{0}, dQ);
    if (!tiles.empty()) {
      const auto Q = block.load(head.Q.block(queries), "Q");
      const auto LSE = block.load(head.LSE.block(queries), "LSE");
      tiles.for_each([&](const PassingTile& tile) {
        const auto K = block.load(head.K.block(tile.keys), "K");
        const auto V = block.load(head.V.block(tile.keys), "V");
        step(block, dQ, Q, dO, LSE, D, K, V, tile);
      });
    }
    block.store(dQ, head.dQ.block(queries));
  });
}

/// dK and dV: blocks of keys stay, queries pass by.
/// step(machine, dK, dV, K, V, Q, dO, LSE, D, tile) adds a tile's part.
template <io::Machine M, Walk W, class Step>
void key_pass(M& machine, const BackwardHead& head, const io::SlowMatrix& D_slow, const W& walk,
              std::int64_t block_k, const Step& step) {
  machine.parallel_tiles(walk.blocks(), block_k, [&](auto& block, io::Range keys) {
    const auto tiles = walk.open(block, keys);
    auto dK = block.scratch(keys.count(), head.K.columns(), "dK");
    auto dV = block.scratch(keys.count(), head.V.columns(), "dV");
    begin_sums(block, head, keys, dK, dV);
    if (!tiles.empty()) {
      const auto K = block.load(head.K.block(keys), "K");
      const auto V = block.load(head.V.block(keys), "V");
      tiles.for_each([&](const PassingTile& tile) {
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

/// Steps for tiles of one key in the first pass, of one query in the second: P and dS of a pair at
/// a time.
inline auto one_key(const ScoreRule& rule) {
  return [&rule](auto& block, auto& dQ, const auto& Q, const auto& dO, const auto& LSE,
                 const auto& D, const auto& K, const auto& V, const PassingTile& tile) {
    auto pair = block.scratch(1, 2, "P and dS");
    block.compute(QueryGradients{rule, tile.queries.begin, tile.keys.begin}, dQ, Q, dO, LSE, D, K,
                  V, pair);
  };
}
inline auto one_query(const ScoreRule& rule) {
  return [&rule](auto& block, auto& dK, auto& dV, const auto& K, const auto& V, const auto& Q,
                 const auto& dO, const auto& LSE, const auto& D, const PassingTile& tile) {
    auto pair = block.scratch(1, 2, "P and dS");
    block.compute(KeyGradients{rule, tile.queries.begin, tile.keys.begin}, dK, dV, K, V, Q, dO, LSE,
                  D, pair);
  };
}

/// Words that a step takes for a tile of so many queries and keys.
using StepWords = io::Amount (*)(io::Words queries, io::Words keys);
inline io::Amount pair_words(io::Words, io::Words) { return HeadShape::real(2); }

/// Cost: reads = 2 q dv + ra (dk + 1) + nz_k (dk + dv) + L, writes = q + q dk,
///       peak = i (2 dk + dv + 2) + j (dk + dv) + step(i, j) + r, L the index words of the walk
///       and r those held; of gathered_query_pass q reads more and i (2 dk + dv + 3)
io::Traffic query_pass_cost(const HeadShape& s, const WalkSums& sums, std::int64_t block_q,
                            std::int64_t dlse, StepWords step, std::int64_t order = kNatural);

/// Cost: reads = kc (dk + dv) + nz_q (dk + dv + 2) + L, writes = k (dk + dv),
///       peak = 2 j (dk + dv) + i (dk + dv + 2) + step(i, j) + r + 2; of gathered_key_pass k reads
///       more and j (2 dk + 2 dv + 1)
io::Traffic key_pass_cost(const BackwardHead& head, const WalkSums& sums, std::int64_t block_k,
                          StepWords step, std::int64_t order = kNatural);

}  // namespace attest::schedules
