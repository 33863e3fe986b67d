#pragma once

#include "schedules/lists/csr/gathered_passes.hpp"

namespace attest::schedules {

/// two_pass_row over lists: blocks of queries stay while the union of their keys passes by, then
/// blocks of keys while the union of their queries does; with bq = bk = 1 over CSR and its
/// transpose. With `grouped` order the blocks of queries share keys and those of keys share
/// queries (RowOrder); each permutation costs a word for each of its rows.
///
/// Cost:   query_pass and key_pass, or gathered_query_pass and gathered_key_pass,
///         with steps of two words, j = 1 in the first and i = 1 in the second
///         [schedules/lists/blocks/block_backward_test "closed forms", "grouping gathers"]
/// Source: ours.
struct CsrTwoPass {
  using Head = BackwardHead;
  static constexpr const char* kName = "csr_two_pass";
  static constexpr const char* kDense = "two_pass_row";
  static constexpr const char* kSummary =
      "two_pass_row over what query blocks see and what sees key blocks; order=grouped permutes";
  static constexpr io::KernelClass kClass{.movement = io::RowMovement::whole_index,
                                          .saved = io::SavedOutputs::read};
  static std::vector<Parameter<CsrTwoPass>> parameters() {
    return {{"bq", &CsrTwoPass::block_q, Extent::queries},
            {"bk", &CsrTwoPass::block_k, Extent::keys},
            order_parameter(&CsrTwoPass::order),
            dlse_parameter(&CsrTwoPass::dlse)};
  }
  std::int64_t block_q, block_k, order = kNatural, dlse = kNoLseGradient;

  template <io::Machine M>
  void run(M& machine, const BackwardHead& head) const {
    const std::int64_t q = head.Q.rows(), k = head.K.rows();
    const auto D = machine.workspace(q, 1, "D");
    if (order == kGrouped) {
      gathered_query_pass(machine, head, D, dlse, block_q, one_key(head.rule));
      gathered_key_pass(machine, head, D, block_k, one_query(head.rule));
      return;
    }
    query_pass(machine, head, D, dlse, TileList(head.rule, q, k, block_q, 1, Stay::queries),
               block_q, one_key(head.rule));
    key_pass(machine, head, D, TileList(head.rule, q, k, 1, block_k, Stay::keys), block_k,
             one_query(head.rule));
  }

  io::Traffic cost(const BackwardHead& head) const;
};

}  // namespace attest::schedules
