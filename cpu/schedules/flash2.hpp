#pragma once

#include "cpu/schedules/parameter.hpp"
#include "cpu/schedules/score_step.hpp"

namespace attest::cpu {

/// Query blocks stay with their sums, key blocks pass by; K leaves before V comes.
///
/// Cost:   reads = ra dk + nz_k (dk + dv), writes = q (dv + 1) with ra the queries of blocks that
///         see a key and nz_k the keys of visited tiles: without a mask
///         q dk + ceil(q/block_q) k (dk + dv);
///         peak = i (dk + dv + 2) + i j + j max(dk, dv), i = min(block_q, q), j = min(block_k, k)
///         [cpu/schedules/forward_test]
/// Source: Dao 2023, Algorithm 1.
struct Flash2 {
  using Head = ForwardHead;
  static constexpr const char* kName = "flash2";
  static std::vector<Parameter<Flash2>> parameters() {
    return {{"bq", &Flash2::block_q, Extent::queries}, {"bk", &Flash2::block_k, Extent::keys}};
  }
  std::int64_t block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const TileMap map(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k);
    machine.parallel_tiles(map.query_groups(), block_q, [&](auto& block, io::Range queries) {
      const std::vector<io::Range> runs = map.key_runs(queries);
      const auto O_block = head.O.block(queries), LSE_block = head.LSE.block(queries);
      if (runs.empty()) return store_empty_rows(block, O_block, LSE_block);
      const auto Q = block.load(head.Q.block(queries), "Q");
      auto O = block.scratch(queries.count(), head.V.columns(), "O");
      auto m = block.scratch(queries.count(), 1, "m");
      auto l = block.scratch(queries.count(), 1, "l");
      block.compute(Fill{0}, O);
      block.compute(StartRows{}, m, l);
      block.for_tiles(runs, block_k, [&](io::Range keys) {
        auto S = block.scratch(queries.count(), keys.count(), "S");
        {
          const auto K = block.load(head.K.block(keys), "K");
          compute_scores(block, S, Q, K, head.rule, queries, keys);
        }
        block.compute(UpdateSoftmax{}, S, m, l, O);
        const auto V = block.load(head.V.block(keys), "V");
        block.compute(Product{}, O, S, V);
      });
      block.compute(FinishRows{}, O, m, l);
      block.store(O, O_block);
      block.store(m, LSE_block);
    });
  }

  io::Traffic cost(const ForwardHead& head) const;
};

}  // namespace attest::cpu
