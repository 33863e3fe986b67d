#pragma once

#include "schedules/engine/backward_step.hpp"

namespace attest::cpu {

/// One pass with query blocks resident for dQ, one with key blocks resident for dK and dV; scores
/// computed in both, nothing read and written in turn. D is made in the first pass.
///
/// Cost:   reads = q (dk + 2 dv + 1) + ceil(q/block_q) k (dk + dv) +
///                 k (dk + dv) + ceil(k/pass_k) q (dk + dv + 2) without a mask; with one, the sums
///         over visited tiles; writes = q + q dk + k (dk + dv);
///         peak = max(i (2 dk + dv + 2) + j (dk + dv) + 2 i j,
///                    2 j' (dk + dv) + i' (dk + dv + 2) + 2 i' j')  [schedules/backward_test]
/// Source: ours.
struct TwoPass {
  using Head = BackwardHead;
  static constexpr const char* kName = "two_pass";
  static constexpr const char* kSummary =
      "one pass for dQ, one for dK and dV, scores computed in both";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<TwoPass>> parameters() {
    return {{"bq", &TwoPass::block_q, Extent::queries},
            {"bk", &TwoPass::block_k, Extent::keys},
            {"cq", &TwoPass::pass_q, Extent::queries},
            {"ck", &TwoPass::pass_k, Extent::keys},
            dlse_parameter(&TwoPass::dlse)};
  }
  std::int64_t block_q, block_k;  // of the pass for dQ
  std::int64_t pass_q, pass_k;    // of the pass for dK and dV
  std::int64_t dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    const TileMap first(head.rule, q, k, block_q, block_k);
    query_pass(machine, head, D, dlse, first, block_q, block_k,
               [&](auto& block, auto& dQ, const auto& Q, const auto& dO, const auto& LSE,
                   const auto& delta, const auto& K, const auto& V, io::Range i, io::Range j) {
                 auto P = block.scratch(i.count(), j.count(), "P");
                 auto dS = block.scratch(i.count(), j.count(), "dS");
                 compute_gradients(block, P, dS, Q, K, V, dO, LSE, delta, head.rule, i, j);
                 block.compute(Product{}, dQ, dS, K);
               });
    const TileMap second(head.rule, q, k, pass_q, pass_k);
    key_pass(machine, head, D, second, pass_q, pass_k,
             [&](auto& block, auto& dK, auto& dV, const auto& K, const auto& V, const auto& Q,
                 const auto& dO, const auto& LSE, const auto& delta, io::Range i, io::Range j) {
               auto P = block.scratch(i.count(), j.count(), "P");
               auto dS = block.scratch(i.count(), j.count(), "dS");
               compute_gradients(block, P, dS, Q, K, V, dO, LSE, delta, head.rule, i, j);
               block.compute(Product{Form::first_transposed}, dV, P, dO);
               block.compute(Product{Form::first_transposed}, dK, dS, Q);
             });
  }

  io::Traffic cost(const BackwardHead& head) const;

  /// dQ and D: step(machine, dQ, Q, dO, LSE, D, K, V, queries, keys) adds a tile's part to dQ.
  template <io::Machine M, class Step>
  static void query_pass(M& machine, const BackwardHead& head, const io::MutableSlowMatrix& D_slow,
                         std::int64_t dlse, const TileMap& map, std::int64_t block_q,
                         std::int64_t block_k, const Step& step) {
    machine.parallel_tiles(map.query_groups(), block_q, [&](auto& block, io::Range queries) {
      const auto dO = block.load(head.dO.block(queries), "dO");
      auto D = block.scratch(queries.count(), 1, "D");
      form_deltas(block, head, dlse, queries, dO, D);
      block.store(D, D_slow.block(queries));
      auto dQ = block.scratch(queries.count(), head.Q.columns(), "dQ");
      block.compute(Fill{0}, dQ);
      const std::vector<io::Range> runs = map.key_runs(queries);
      if (!runs.empty()) {
        const auto Q = block.load(head.Q.block(queries), "Q");
        const auto LSE = block.load(head.LSE.block(queries), "LSE");
        block.for_tiles(runs, block_k, [&](io::Range keys) {
          const auto K = block.load(head.K.block(keys), "K");
          const auto V = block.load(head.V.block(keys), "V");
          step(block, dQ, Q, dO, LSE, D, K, V, queries, keys);
        });
      }
      block.store(dQ, head.dQ.block(queries));
    });
  }

  /// dK and dV: step(machine, dK, dV, K, V, Q, dO, LSE, D, queries, keys) adds a tile's part.
  template <io::Machine M, class Step>
  static void key_pass(M& machine, const BackwardHead& head, const io::SlowMatrix& D_slow,
                       const TileMap& map, std::int64_t block_q, std::int64_t block_k,
                       const Step& step) {
    machine.parallel_tiles(map.key_groups(), block_k, [&](auto& block, io::Range keys) {
      auto dK = block.scratch(keys.count(), head.K.columns(), "dK");
      auto dV = block.scratch(keys.count(), head.V.columns(), "dV");
      begin_sums(block, head, keys, dK, dV);
      const std::vector<TileMap::Run> runs = map.query_runs(keys);
      if (!runs.empty()) {
        const auto K = block.load(head.K.block(keys), "K");
        const auto V = block.load(head.V.block(keys), "V");
        for (const TileMap::Run& run : runs) {
          block.for_tiles(run.rows, block_q, [&](io::Range queries) {
            const auto Q = block.load(head.Q.block(queries), "Q");
            const auto dO = block.load(head.dO.block(queries), "dO");
            const auto LSE = block.load(head.LSE.block(queries), "LSE");
            const auto D = block.load(D_slow.block(queries), "D");
            step(block, dK, dV, K, V, Q, dO, LSE, D, queries, keys);
          });
        }
      }
      block.store(dK, head.dK.block(keys));
      block.store(dV, head.dV.block(keys));
    });
  }

  /// Returns what the passes cost besides the words that `inner(i, j)` says a step takes.
  template <class Inner>
  static io::Traffic query_pass_cost(const HeadShape& s, const TileMap& map, std::int64_t block_q,
                                     std::int64_t dlse, const Inner& inner);
  template <class Inner>
  static io::Traffic key_pass_cost(const BackwardHead& head, const TileMap& map,
                                   std::int64_t block_k, const Inner& inner);
};

/// two_pass with single keys passing in the first pass and single queries in the second (B1 of the
/// theory): best for fast words >= 2.5 d^2.
///
/// Cost:   words as two_pass with block_k = pass_q = 1;
///         peak = max(i (2 dk + dv + 2) + dk + dv + 2, 2 j (dk + dv) + dk + dv + 4)
///         [schedules/backward_test]
/// Source: ours.
struct TwoPassRow {
  using Head = BackwardHead;
  static constexpr const char* kName = "two_pass_row";
  static constexpr const char* kSummary =
      "two_pass with single keys and queries passing by; best from 2.5 d^2 words on";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<TwoPassRow>> parameters() {
    return {{"bq", &TwoPassRow::block_q, Extent::queries},
            {"bk", &TwoPassRow::block_k, Extent::keys},
            dlse_parameter(&TwoPassRow::dlse)};
  }
  std::int64_t block_q, block_k, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    TwoPass::query_pass(
        machine, head, D, dlse, TileMap(head.rule, q, k, block_q, 1), block_q, 1,
        [&](auto& block, auto& dQ, const auto& Q, const auto& dO, const auto& LSE,
            const auto& delta, const auto& K, const auto& V, io::Range i, io::Range j) {
          auto pair = block.scratch(1, 2, "P and dS");
          block.compute(QueryGradients{head.rule, i.begin, j.begin}, dQ, Q, dO, LSE, delta, K, V,
                        pair);
        });
    TwoPass::key_pass(
        machine, head, D, TileMap(head.rule, q, k, 1, block_k), 1, block_k,
        [&](auto& block, auto& dK, auto& dV, const auto& K, const auto& V, const auto& Q,
            const auto& dO, const auto& LSE, const auto& delta, io::Range i, io::Range j) {
          auto pair = block.scratch(1, 2, "P and dS");
          block.compute(KeyGradients{head.rule, i.begin, j.begin}, dK, dV, K, V, Q, dO, LSE, delta,
                        pair);
        });
  }

  io::Traffic cost(const BackwardHead& head) const;
};

}  // namespace attest::cpu
