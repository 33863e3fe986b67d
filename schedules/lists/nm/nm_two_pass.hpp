#pragma once

#include "schedules/dense/passes.hpp"
#include "schedules/walks/lists/nm_metadata.hpp"

namespace attest::schedules {

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
  using Head = BackwardHead;
  static constexpr const char* kName = "nm_two_pass";
  static constexpr const char* kDense = "two_pass_row";
  static constexpr const char* kSummary =
      "N:M patterns: query blocks stay, kept keys pass by, then the reverse; offsets count twice";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<NmTwoPass>> parameters() {
    return {{"bq", &NmTwoPass::block_q, Extent::queries},
            {"bk", &NmTwoPass::block_k, Extent::keys},
            dlse_parameter(&NmTwoPass::dlse)};
  }
  std::int64_t block_q, block_k, dlse = kNoLseGradient;
  NmShape shape{};

  static void require_pattern(const attest_problem& problem) { nm_shape_of(problem); }
  void prepare(const attest_problem& problem) { shape = nm_shape_of(problem); }

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const NmMetadata metadata(NmLayout(head.rule, q, k, shape, block_q));
    const auto D = machine.workspace(q, 1, "D");
    query_pass(machine, head, D, dlse, NmWalk(metadata, q, block_q, Stay::queries), block_q,
               one_key(head.rule));
    key_pass(machine, head, D, NmWalk(metadata, k, block_k, Stay::keys), block_k,
             one_query(head.rule));
  }

  io::Traffic cost(const BackwardHead& head) const;
};

}  // namespace attest::schedules
