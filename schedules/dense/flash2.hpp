#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"

namespace attest::cpu {

/// Query blocks stay with their sums, key blocks pass by; K leaves before V comes.
///
/// Cost:   reads = ra dk + nz_k (dk + dv), writes = q (dv + 1) with ra the queries of blocks that
///         see a key and nz_k the keys of visited tiles: without a mask
///         q dk + ceil(q/block_q) k (dk + dv);
///         peak = i (dk + dv + 2) + i j + j max(dk, dv), i = min(block_q, q), j = min(block_k, k)
///         [schedules/forward_test]
/// Source: Dao 2023, Algorithm 1.
struct Flash2 {
  using Head = ForwardHead;
  static constexpr const char* kName = "flash2";
  static constexpr const char* kSummary =
      "FlashAttention-2: query blocks stay with their sums, key blocks pass by";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<Flash2>> parameters() {
    return {{"bq", &Flash2::block_q, Extent::queries}, {"bk", &Flash2::block_k, Extent::keys}};
  }
  std::int64_t block_q, block_k;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const TileMap map(head.rule, head.Q.rows(), head.K.rows(), block_q, block_k);
    machine.parallel_tiles(map.query_groups(), block_q, [&](auto& block, io::Range queries) {
      const std::vector<io::Range> runs = map.key_runs(queries);
      const auto O = head.O.block(queries), LSE = head.LSE.block(queries);
      if (runs.empty()) {
        store_empty_rows(block, O, LSE, O.columns());
      } else {
        attend(block, head, queries, runs, O, LSE);
      }
    });
  }

  /// One block of queries on runs of keys.
  template <io::Machine M>
  void attend(M& machine, const ForwardHead& head, io::Range queries,
              const std::vector<io::Range>& runs, const io::MutableSlowMatrix& O_block,
              const io::MutableSlowMatrix& LSE_block) const {
    const auto Q = machine.load(head.Q.block(queries), "Q");
    auto O = machine.scratch(queries.count(), head.V.columns(), "O");
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    machine.compute(Fill{0}, O);
    machine.compute(StartRows{}, m, l);
    machine.for_tiles(runs, block_k, [&](io::Range keys) {
      auto S = machine.scratch(queries.count(), keys.count(), "S");
      {
        const auto K = machine.load(head.K.block(keys), "K");
        compute_scores(machine, S, Q, K, head.rule, queries, keys);
      }
      update_softmax(machine, S, m, l, O);
      const auto V = machine.load(head.V.block(keys), "V");
      machine.compute(Product{}, O, S, V);
    });
    machine.compute(FinishRows{}, O, m, l);
    machine.store(O, O_block);
    machine.store(m, LSE_block);
  }

  /// The most that attend() takes.
  static io::Amount peak(const HeadShape& s, const TileMap::Sums& sums);

  io::Traffic cost(const ForwardHead& head) const;
};

}  // namespace attest::cpu
