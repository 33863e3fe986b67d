#pragma once

#include "schedules/engine/parameter.hpp"
#include "schedules/lists/blocks/listed_passes.hpp"
#include "schedules/walks/nm_metadata.hpp"

namespace attest::sparse {

/// two_pass_row for N:M patterns: blocks of queries stay while the keys that any of them keeps pass
/// by, then blocks of keys while queries pass. Offsets say what a query keeps and not who keeps a
/// key, so the second pass reads those of all queries for the groups that its block of keys meets;
/// every query keeps N keys of every whole group, so that a block of one meets all queries, but
/// where a window or key lengths take keys away.
///
/// Cost:   first pass: reads = q (dk + 2 dv + 1) + nz_k (dk + dv) + sum over blocks of
///         ceil(k/M) w(i), writes = q (dk + 1), peak = i (2 dk + dv + 2) + dk + dv + 2 + w(i);
///         second: reads = k (dk + dv) + nz_q (dk + dv + 2) + sum over blocks of keys that meet g
///         groups and blocks of queries of g w(i), writes = k (dk + dv),
///         peak = 2 j (dk + dv) + dk + dv + 4 + g w(i); w as in schedules/lists/nm/nm_gather.hpp
///         [schedules/lists/blocks/block_backward_test "closed forms"],
///         [schedules/lists/nm/nm_two_pass_test "words"]
/// Source: ours.
struct NmTwoPass {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "nm_two_pass";
  static constexpr const char* kDense = "two_pass_row";
  static constexpr const char* kSummary =
      "N:M patterns: query blocks stay, kept keys pass by, then the reverse; offsets count twice";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<cpu::Parameter<NmTwoPass>> parameters() {
    return {{"bq", &NmTwoPass::block_q, cpu::Extent::queries},
            {"bk", &NmTwoPass::block_k, cpu::Extent::keys},
            cpu::dlse_parameter(&NmTwoPass::dlse)};
  }
  std::int64_t block_q, block_k, dlse = cpu::kNoLseGradient;
  NmShape shape{};

  static void require_pattern(const attest_problem& problem) { nm_shape_of(problem); }
  void prepare(const attest_problem& problem) { shape = nm_shape_of(problem); }

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const NmMetadata metadata(NmLayout(head.rule, q, k, shape, block_q));
    const auto D = machine.workspace(q, 1, "D");
    machine.parallel_tiles(
        io::single_blocks(q, block_q), block_q,
        [&](auto& block, io::Range queries) { add_queries(block, head, metadata, queries, D); });
    machine.parallel_tiles(
        io::single_blocks(k, block_k), block_k,
        [&](auto& block, io::Range keys) { add_keys(block, head, metadata, keys, D); });
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;

 private:
  template <class M>
  void add_queries(M& machine, const cpu::BackwardHead& head, const NmMetadata& metadata,
                   io::Range queries, const io::MutableSlowMatrix& D_slow) const {
    const auto dO = machine.load(head.dO.block(queries), "dO");
    auto D = machine.scratch(queries.count(), 1, "D");
    store_row_sums(machine, head, D_slow, dlse, queries, dO, D);
    auto dQ = machine.scratch(queries.count(), head.Q.columns(), "dQ");
    machine.compute(cpu::Fill{0}, dQ);
    const auto Q = machine.load(head.Q.block(queries), "Q");
    const auto LSE = machine.load(head.LSE.block(queries), "LSE");
    metadata.for_keys(machine, queries, [&](io::Range key) {
      const auto K = machine.load(head.K.block(key), "K");
      const auto V = machine.load(head.V.block(key), "V");
      auto pair = machine.scratch(1, 2, "P and dS");
      machine.compute(cpu::QueryGradients{head.rule, queries.begin, key.begin}, dQ, Q, dO, LSE, D,
                      K, V, pair);
    });
    machine.store(dQ, head.dQ.block(queries));
  }

  template <class M>
  void add_keys(M& machine, const cpu::BackwardHead& head, const NmMetadata& metadata,
                io::Range keys, const io::SlowMatrix& D_slow) const {
    auto dK = machine.scratch(keys.count(), head.K.columns(), "dK");
    auto dV = machine.scratch(keys.count(), head.V.columns(), "dV");
    cpu::begin_sums(machine, head, keys, dK, dV);
    const auto K = machine.load(head.K.block(keys), "K");
    const auto V = machine.load(head.V.block(keys), "V");
    metadata.for_queries(machine, keys, [&](io::Range query) {
      const auto Q = machine.load(head.Q.block(query), "Q");
      const auto dO = machine.load(head.dO.block(query), "dO");
      const auto LSE = machine.load(head.LSE.block(query), "LSE");
      const auto D = machine.load(D_slow.block(query), "D");
      auto pair = machine.scratch(1, 2, "P and dS");
      machine.compute(cpu::KeyGradients{head.rule, query.begin, keys.begin}, dK, dV, K, V, Q, dO,
                      LSE, D, pair);
    });
    machine.store(dK, head.dK.block(keys));
    machine.store(dV, head.dV.block(keys));
  }
};

}  // namespace attest::sparse
