#pragma once

#include "schedules/lists/csr/gathered_passes.hpp"

namespace attest::sparse {

/// two_pass_row over lists: blocks of queries stay while the union of their keys passes by, then
/// blocks of keys while the union of their queries does; with bq = bk = 1 over CSR and its
/// transpose. With `grouped` order the blocks of queries share keys and those of keys share
/// queries (RowOrder); each permutation costs a word for each of its rows.
///
/// Cost:   listed_query_pass and listed_key_pass, or gathered_query_pass and gathered_key_pass,
///         with steps of two words, j = 1 in the first and i = 1 in the second
///         [schedules/lists/blocks/block_backward_test "closed forms", "grouping gathers"]
/// Source: ours.
struct CsrTwoPass {
  using Head = cpu::BackwardHead;
  static constexpr const char* kName = "csr_two_pass";
  static constexpr const char* kDense = "two_pass_row";
  static constexpr const char* kSummary =
      "two_pass_row over what query blocks see and what sees key blocks; order=grouped permutes";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<cpu::Parameter<CsrTwoPass>> parameters() {
    return {{"bq", &CsrTwoPass::block_q, cpu::Extent::queries},
            {"bk", &CsrTwoPass::block_k, cpu::Extent::keys},
            cpu::order_parameter(&CsrTwoPass::order),
            cpu::dlse_parameter(&CsrTwoPass::dlse)};
  }
  std::int64_t block_q, block_k, order = kNatural, dlse = cpu::kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const cpu::BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    const auto query_step = [&](auto& block, auto& dQ, const auto& Q, const auto& dO,
                                const auto& LSE, const auto& delta, const auto& K, const auto& V,
                                const TileList::Entry& tile) {
      auto pair = block.scratch(1, 2, "P and dS");
      block.compute(cpu::QueryGradients{head.rule, tile.queries.begin, tile.keys.begin}, dQ, Q, dO,
                    LSE, delta, K, V, pair);
    };
    const auto key_step = [&](auto& block, auto& dK, auto& dV, const auto& K, const auto& V,
                              const auto& Q, const auto& dO, const auto& LSE, const auto& delta,
                              const TileList::Entry& tile) {
      auto pair = block.scratch(1, 2, "P and dS");
      block.compute(cpu::KeyGradients{head.rule, tile.queries.begin, tile.keys.begin}, dK, dV, K, V,
                    Q, dO, LSE, delta, pair);
    };
    if (order == kGrouped) {
      gathered_query_pass(machine, head, D, dlse, block_q, query_step);
      gathered_key_pass(machine, head, D, block_k, key_step);
      return;
    }
    const TileList rows(head.rule, q, k, block_q, 1, ListsOf::queries);
    listed_query_pass(machine, head, D, dlse, rows, block_q, query_step);
    const TileList columns(head.rule, q, k, 1, block_k, ListsOf::keys);
    listed_key_pass(machine, head, D, columns, block_k, key_step);
  }

  io::Traffic cost(const cpu::BackwardHead& head) const;
};

}  // namespace attest::sparse
