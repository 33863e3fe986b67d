#pragma once

#include "schedules/dense/passes.hpp"
#include "schedules/walks/lists/tile_list.hpp"
#include "schedules/walks/tile_map.hpp"

namespace attest::schedules {

/// One pass with query blocks resident for dQ, one with key blocks resident for dK and dV; scores
/// computed in both, nothing read and written in turn. D is made in the first pass.
///
/// Cost:   query_pass and key_pass with steps of 2 i j words: without a mask
///         reads = q (dk + 2 dv + 1) + ceil(q/block_q) k (dk + dv) +
///                 k (dk + dv) + ceil(k/pass_k) q (dk + dv + 2); writes = q + q dk + k (dk + dv);
///         peak = max(i (2 dk + dv + 2) + j (dk + dv) + 2 i j,
///                    2 j' (dk + dv) + i' (dk + dv + 2) + 2 i' j')
///         [schedules/backward_test], [schedules/lists/blocks/block_backward_test "closed forms"]
/// Source: ours.
template <Walk W>
struct TwoPassOver {
  using Head = BackwardHead;
  static constexpr const char* kDense = "two_pass";
  static constexpr const char* kName = W::kLists ? "block_two_pass" : kDense;
  static constexpr const char* kSummary =
      W::kLists ? "two_pass over a list of tiles and its transpose; index words count"
                : "one pass for dQ, one for dK and dV, scores computed in both";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<TwoPassOver>> parameters() {
    return {{"bq", &TwoPassOver::block_q, Extent::queries},
            {"bk", &TwoPassOver::block_k, Extent::keys},
            {"cq", &TwoPassOver::pass_q, Extent::queries},
            {"ck", &TwoPassOver::pass_k, Extent::keys},
            dlse_parameter(&TwoPassOver::dlse)};
  }
  std::int64_t block_q, block_k;  // of the pass for dQ
  std::int64_t pass_q, pass_k;    // of the pass for dK and dV
  std::int64_t dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    query_pass(machine, head, D, dlse, W(head.rule, q, k, block_q, block_k, Stay::queries), block_q,
               [&](auto& block, auto& dQ, const auto& Q, const auto& dO, const auto& LSE,
                   const auto& delta, const auto& K, const auto& V, const PassingTile& tile) {
                 auto P = block.scratch(tile.queries.count(), tile.keys.count(), "P");
                 auto dS = block.scratch(tile.queries.count(), tile.keys.count(), "dS");
                 compute_gradients(block, P, dS, Q, K, V, dO, LSE, delta, head.rule, tile.queries,
                                   tile.keys);
                 block.compute(Product{}, dQ, dS, K);
               });
    key_pass(machine, head, D, W(head.rule, q, k, pass_q, pass_k, Stay::keys), pass_k,
             [&](auto& block, auto& dK, auto& dV, const auto& K, const auto& V, const auto& Q,
                 const auto& dO, const auto& LSE, const auto& delta, const PassingTile& tile) {
               auto P = block.scratch(tile.queries.count(), tile.keys.count(), "P");
               auto dS = block.scratch(tile.queries.count(), tile.keys.count(), "dS");
               compute_gradients(block, P, dS, Q, K, V, dO, LSE, delta, head.rule, tile.queries,
                                 tile.keys);
               block.compute(Product{Form::first_transposed}, dV, P, dO);
               block.compute(Product{Form::first_transposed}, dK, dS, Q);
             });
  }

  io::Traffic cost(const BackwardHead& head) const;
};

using TwoPass = TwoPassOver<TileMap>;

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
    query_pass(machine, head, D, dlse, TileMap(head.rule, q, k, block_q, 1, Stay::queries), block_q,
               one_key(head.rule));
    key_pass(machine, head, D, TileMap(head.rule, q, k, 1, block_k, Stay::keys), block_k,
             one_query(head.rule));
  }

  io::Traffic cost(const BackwardHead& head) const;
};

using BlockTwoPass = TwoPassOver<TileList>;

}  // namespace attest::schedules
