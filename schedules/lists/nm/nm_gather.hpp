#pragma once

#include <algorithm>

#include "schedules/engine/parameter.hpp"
#include "schedules/engine/score_step.hpp"
#include "schedules/walks/nm_metadata.hpp"
#include "schedules/walks/tile_list.hpp"

namespace attest::sparse {

using cpu::HeadShape;

/// flash2_row for N:M patterns: blocks of queries stay, the keys that any of them keeps pass by
/// word by word, group after group with its metadata.
///
/// Cost:   reads = q dk + nz_k (dk + dv) + sum over blocks of ceil(k/M) w(i), writes = q (dv + 1)
///         with w(i) = ceil(i N ceil(log2 M) / 32); peak = i (dk + dv + 3) + w(i) + 1
///         [schedules/lists/nm/nm_gather_test "words"]
/// Source: ours; the offsets are those of Mishra et al. 2021, Accelerating Sparse Deep Neural
///         Networks, section 3.
struct NmGather {
  using Head = cpu::ForwardHead;
  static constexpr const char* kName = "nm_gather";
  static constexpr const char* kDense = "flash2_row";
  static constexpr const char* kSummary =
      "N:M patterns: query blocks stay, kept keys pass by; offsets count, packed in words";
  static constexpr io::KernelClass kClass{.evaluation = io::Evaluation::once,
                                          .lse = io::LseOutput::written};
  static std::vector<cpu::Parameter<NmGather>> parameters() {
    return {{"bq", &NmGather::block_q, cpu::Extent::queries}};
  }
  std::int64_t block_q;
  NmShape shape{};

  static void require_pattern(const attest_problem& problem) { nm_shape_of(problem); }
  void prepare(const attest_problem& problem) { shape = nm_shape_of(problem); }

  template <io::Machine M>
  void run(M& machine, const cpu::ForwardHead& head) const {
    const std::int64_t q = head.Q.rows();
    const NmMetadata metadata(NmLayout(head.rule, q, head.K.rows(), shape, block_q));
    machine.parallel_tiles(io::single_blocks(q, block_q), block_q,
                           [&](auto& block, io::Range queries) {
                             const auto Q = block.load(head.Q.block(queries), "Q");
                             auto O = block.scratch(queries.count(), head.V.columns(), "O");
                             auto m = block.scratch(queries.count(), 1, "m");
                             auto l = block.scratch(queries.count(), 1, "l");
                             auto s = block.scratch(queries.count(), 1, "S");
                             block.compute(cpu::Fill{0}, O);
                             block.compute(cpu::StartRows{}, m, l);
                             metadata.for_keys(block, queries, [&](io::Range key) {
                               {
                                 const auto K = block.stream(head.K.block(key), "K");
                                 cpu::compute_scores(block, s, Q, K, head.rule, queries, key);
                               }
                               cpu::update_softmax(block, s, m, l, O);
                               const auto V = block.stream(head.V.block(key), "V");
                               block.compute(cpu::Product{}, O, s, V);
                             });
                             block.compute(cpu::FinishRows{}, O, m, l);
                             block.store(O, head.O.block(queries));
                             block.store(m, head.LSE.block(queries));
                           });
  }

  io::Traffic cost(const cpu::ForwardHead& head) const;
};

}  // namespace attest::sparse
