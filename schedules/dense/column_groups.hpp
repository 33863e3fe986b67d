#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"

namespace attest::cpu {

/// Query blocks stay; K and V pass by word by word, one key at a time. V in groups of columns,
/// each with the scores computed again: for head_dim_v > head_dim_qk, fewer words than with all of
/// O resident.
///
/// Cost:   reads = ra dk + nz_k (G dk + dv), writes = q (dv + 1) with G = ceil(dv / columns), ra
/// the
///         queries of blocks that see a key, nz_k the keys they see in turn: without a mask
///         q dk + ceil(q/block_q) k (G dk + dv);
///         peak = i (dk + g + 3) + 1, i = min(block_q, q), g = min(columns, dv)
///         [schedules/forward_test]
/// Source: ours. Q is read once for all groups.
struct ColumnGroups {
  using Head = ForwardHead;
  static constexpr const char* kName = "column_groups";
  static constexpr const char* kSummary =
      "flash2_row with V in groups of columns, scores computed for each; for dv > d";
  static constexpr io::KernelClass kClass{.lse = io::LseOutput::written};
  static std::vector<Parameter<ColumnGroups>> parameters() {
    return {{"bq", &ColumnGroups::block_q, Extent::queries},
            {"bv", &ColumnGroups::columns, Extent::head_dim_v}};
  }
  std::int64_t block_q, columns;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const TileMap map(head.rule, head.Q.rows(), head.K.rows(), block_q, 1);
    machine.parallel_tiles(map.query_groups(), block_q, [&](auto& block, io::Range queries) {
      const std::vector<io::Range> runs = map.key_runs(queries);
      const auto O = head.O.block(queries), LSE = head.LSE.block(queries);
      if (runs.empty()) return store_empty_rows(block, O, LSE, columns);
      const auto Q = block.load(head.Q.block(queries), "Q");
      const std::int64_t dv = head.V.columns(), first = std::min(columns, dv);
      // Only the first group stores LSE.
      attend(block, head, Q, queries, runs, {0, first}, &LSE);
      block.for_tiles(io::Range{first, dv}, columns, [&](io::Range group) {
        attend(block, head, Q, queries, runs, group, nullptr);
      });
    });
  }

  io::Traffic cost(const ForwardHead& head) const;

 private:
  template <class M, class Queries>
  static void attend(M& machine, const ForwardHead& head, const Queries& Q, io::Range queries,
                     const std::vector<io::Range>& runs, io::Range group,
                     const io::MutableSlowMatrix* LSE) {
    auto O = machine.scratch(queries.count(), group.count(), "O");
    auto m = machine.scratch(queries.count(), 1, "m");
    auto l = machine.scratch(queries.count(), 1, "l");
    auto s = machine.scratch(queries.count(), 1, "S");
    machine.compute(Fill{0}, O);
    machine.compute(StartRows{}, m, l);
    machine.for_tiles(runs, 1, [&](io::Range key) {
      {
        const auto K = machine.stream(head.K.block(key), "K");
        compute_scores(machine, s, Q, K, head.rule, queries, key);
      }
      update_softmax(machine, s, m, l, O);
      const auto V = machine.stream(head.V.block(key, group), "V");
      machine.compute(Product{}, O, s, V);
    });
    machine.compute(FinishRows{}, O, m, l);
    machine.store(O, head.O.block(queries, group));
    if (LSE != nullptr) machine.store(m, *LSE);
  }
};

/// Query blocks stay with their sums; K and V pass by word by word (F1 of the theory): optimal with
/// its constant for 4 d^2 <= fast words, much smaller than K and V.
///
/// Cost:   reads = ra dk + nz_k (dk + dv), writes = q (dv + 1): without a mask
///         q dk + ceil(q/block_q) k (dk + dv); peak = i (dk + dv + 3) + 1
///         [schedules/forward_test]
/// Source: ours; Dao 2023, Algorithm 1, with key blocks of one key.
struct Flash2Row {
  using Head = ForwardHead;
  static constexpr const char* kName = "flash2_row";
  static constexpr const char* kSummary =
      "query blocks stay, single keys pass by word by word; optimal from 4 d^2 words on";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<Flash2Row>> parameters() {
    return {{"bq", &Flash2Row::block_q, Extent::queries}};
  }
  std::int64_t block_q;

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    one_group(head).run(machine, head);
  }
  io::Traffic cost(const ForwardHead& head) const { return one_group(head).cost(head); }

 private:
  ColumnGroups one_group(const ForwardHead& head) const { return {block_q, head.V.columns()}; }
};

}  // namespace attest::cpu
