#pragma once

#include "sparse/schedules/listed_passes.hpp"

namespace attest::sparse {

/// two_pass_row over lists: blocks of queries stay while the union of their keys passes by, then
/// blocks of keys while the union of their queries does; with bq = bk = 1 over CSR and its
/// transpose.
///
/// Cost:   listed_query_pass and listed_key_pass with steps of two words, j = 1 in the first and
///         i = 1 in the second  [sparse/schedules/block_backward_test "closed forms"]
/// Source: ours.
struct CsrTwoPass {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "csr_two_pass";
  static constexpr const char* kDense = "two_pass_row";
  static constexpr const char* kSummary =
      "two_pass_row over the keys that query blocks see, and the queries that see key blocks";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index};
  static std::vector<cpu::Parameter<CsrTwoPass>> parameters() {
    return {{"bq", &CsrTwoPass::block_q, cpu::Extent::queries},
            {"bk", &CsrTwoPass::block_k, cpu::Extent::keys},
            cpu::dlse_parameter(&CsrTwoPass::dlse)};
  }
  std::int64_t block_q, block_k, dlse = cpu::kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    const TileList rows(head.rule, q, k, block_q, 1, ListsOf::queries);
    listed_query_pass(
        machine, head, D, dlse, rows, block_q,
        [&](auto& block, auto& dQ, const auto& Q, const auto& dO, const auto& LSE,
            const auto& delta, const auto& K, const auto& V, const TileList::Entry& tile) {
          auto pair = block.scratch(1, 2, "P and dS");
          block.compute(cpu::QueryGradients{head.rule, tile.queries.begin, tile.keys.begin}, dQ, Q,
                        dO, LSE, delta, K, V, pair);
        });
    const TileList columns(head.rule, q, k, 1, block_k, ListsOf::keys);
    listed_key_pass(
        machine, head, D, columns, block_k,
        [&](auto& block, auto& dK, auto& dV, const auto& K, const auto& V, const auto& Q,
            const auto& dO, const auto& LSE, const auto& delta, const TileList::Entry& tile) {
          auto pair = block.scratch(1, 2, "P and dS");
          block.compute(cpu::KeyGradients{head.rule, tile.queries.begin, tile.keys.begin}, dK, dV,
                        K, V, Q, dO, LSE, delta, pair);
        });
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;
};

}  // namespace attest::sparse
