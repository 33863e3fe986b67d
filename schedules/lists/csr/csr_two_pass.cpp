#include "schedules/lists/csr/csr_two_pass.hpp"

namespace attest::schedules {

io::Traffic CsrTwoPass::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  std::vector<std::int64_t> query_order, key_order;
  if (order == kGrouped) {
    query_order = RowOrder::grouped(head.rule, q, k, block_q, Stay::queries).rows();
    key_order = RowOrder::grouped(head.rule, q, k, block_k, Stay::keys).rows();
  }
  const auto rows = TileList::sums_of(head.rule, q, k, block_q, 1, Stay::queries, query_order);
  const auto columns = TileList::sums_of(head.rule, q, k, 1, block_k, Stay::keys, key_order);
  return then(query_pass_cost(s, rows, block_q, dlse, pair_words, order),
              key_pass_cost(head, columns, block_k, pair_words, order));
}

}  // namespace attest::schedules
