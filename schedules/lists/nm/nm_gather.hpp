#pragma once

#include "schedules/dense/column_groups.hpp"
#include "schedules/walks/lists/nm_metadata.hpp"

namespace attest::schedules {

/// flash2_row for N:M patterns: blocks of queries stay, the keys that any of them keeps pass by
/// word by word, group after group with its metadata.
///
/// Cost:   reads = q dk + nz_k (dk + dv) + sum over blocks of ceil(k/M) w(i), writes = q (dv + 1)
///         with w(i) = ceil(i N ceil(log2 M) / 32); peak = i (dk + dv + 3) + w(i) + 1
///         [schedules/lists/nm/nm_gather_test "words"]
/// Source: ours; the offsets are those of Mishra et al. 2021, Accelerating Sparse Deep Neural
///         Networks, section 3.
struct NmGather {
  using Head = ForwardHead;
  static constexpr const char* kName = "nm_gather";
  static constexpr const char* kSource =
      "this project's own; offsets of Mishra et al. 2021, section 3";
  static constexpr const char* kDense = "flash2_row";
  static constexpr const char* kSummary =
      "N:M patterns: query blocks stay, kept keys pass by; offsets count, packed in words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<Parameter<NmGather>> parameters() {
    return {{"bq", &NmGather::block_q, Extent::queries}};
  }
  std::int64_t block_q;
  NmShape shape{};

  static void require_pattern(const attest_problem& problem) { nm_shape_of(problem); }
  void prepare(const attest_problem& problem) { shape = nm_shape_of(problem); }

  template <io::Machine M>
  void run(M& machine, const ForwardHead& head) const {
    const std::int64_t q = head.Q.rows();
    const NmMetadata metadata(NmLayout(head.rule, q, head.K.rows(), shape, block_q));
    attend_rows(machine, head, NmWalk(metadata, q, block_q, Stay::queries), block_q,
                head.V.columns());
  }

  io::Traffic cost(const ForwardHead& head) const;
};

}  // namespace attest::schedules
