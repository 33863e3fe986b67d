#pragma once

#include "cpu/schedules/band.hpp"
#include "cpu/schedules/parameter.hpp"
#include "cpu/schedules/score_step.hpp"

namespace attest::cpu {

/// Query blocks stay with all their scores in place of rows of Q and O, whose columns pass by, and
/// with them the words of K and of V; each row of scores begins at the first key of its band. Q is
/// read and O written once, and as many queries stay as have M scores: fewer words than flash2
/// where queries see fewer than dk + dv keys.
///
/// Cost:   reads = ra dk + nz_k (dk + dv), writes = q (dv + 1), with ra the queries of blocks that
///         see a key and nz_k the keys of their bands in turn; peak = max over the blocks of
///         i w + 2 i + 1 with w keys in the widest band of the block  [cpu/schedules/forward_test]
/// Source: ours.
struct HeldScores {
  using Head = ForwardHead;
  static constexpr const char* kName = "held_scores";
  static constexpr const char* kSummary =
      "query blocks stay with all their scores; columns of Q, K, V and O pass by; for narrow bands";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static constexpr bool kTilesOfBand = true;  // without the band no tiles would fit
  static std::vector<Parameter<HeldScores>> parameters() {
    return {{"bq", &HeldScores::block_q, Extent::queries}};
  }
  std::int64_t block_q;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const auto blocks = alike_blocks(head.rule, head.Q.rows(), block_q);
    machine.parallel_tiles(blocks, block_q, [&](auto& block, io::Range queries) {
      const io::Range keys = keys_of(head.rule, queries);
      if (keys.count() == 0) {
        return store_empty_rows(block, head.O.block(queries), head.LSE.block(queries), 1);
      }
      auto S = block.scratch(queries.count(), widest(head.rule, queries), "S");
      form_scores(block, head, queries, keys, S);
      form_probabilities(block, head, queries, S);
      form_outputs(block, head, queries, keys, S);
    });
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  static io::Traffic block_cost(const HeadShape& s, const ScoreRule& rule, io::Range queries);

  // Keys in the widest band of a block.
  static std::int64_t widest(const ScoreRule& rule, io::Range queries);

  template <class M, class Tile>
  static void form_scores(M& machine, const ForwardHead& head, io::Range queries, io::Range keys,
                          Tile& S) {
    machine.compute(Fill{0}, S);
    machine.for_tiles(all_columns(head.Q), 1, [&](io::Range l) {
      const auto Q = machine.load(head.Q.block(queries, l), "Q");
      const auto K = machine.stream(head.K.block(keys, l), "K");
      machine.compute(BandScores{{head.rule, queries.begin, keys.begin}}, S, Q, K);
    });
    machine.compute(FinishBands{head.rule, queries.begin}, S);
  }

  template <class M, class Tile>
  static void form_probabilities(M& machine, const ForwardHead& head, io::Range queries, Tile& S) {
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    machine.compute(StartRows{}, m, l);
    update_statistics(machine, m, l, S);
    machine.compute(LogSumExp{}, m, l);
    machine.compute(Probabilities{}, S, m);
    machine.store(m, head.LSE.block(queries));
  }

  // Divided by their sums, because LSE is rounded.
  template <class M, class Tile>
  static void form_outputs(M& machine, const ForwardHead& head, io::Range queries, io::Range keys,
                           const Tile& P) {
    auto sums = machine.scratch(queries.count(), 1, "row sums");
    machine.compute(Fill{0}, sums);
    machine.compute(AddRowSums{}, sums, P);
    machine.for_tiles(all_columns(head.V), 1, [&](io::Range c) {
      auto O = machine.scratch(queries.count(), 1, "O");
      machine.compute(Fill{0}, O);
      {
        const auto V = machine.stream(head.V.block(keys, c), "V");
        machine.compute(BandOutputs{{head.rule, queries.begin, keys.begin}}, O, P, V);
      }
      machine.compute(DivideRows{}, O, sums);
      machine.store(O, head.O.block(queries, c));
    });
  }
};

}  // namespace attest::cpu
