#include "schedules/lists/csr/csr_two_pass.hpp"

namespace attest::sparse {

io::Traffic CsrTwoPass::cost(const cpu::BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const StepWords pair = [](io::Words, io::Words) { return HeadShape::real(2); };
  std::vector<std::int64_t> query_order, key_order;
  if (order == kGrouped) {
    query_order = RowOrder::grouped(head.rule, q, k, block_q, ListsOf::queries).rows();
    key_order = RowOrder::grouped(head.rule, q, k, block_k, ListsOf::keys).rows();
  }
  const auto rows = TileList::sums_of(head.rule, q, k, block_q, 1, ListsOf::queries, query_order);
  const auto columns = TileList::sums_of(head.rule, q, k, 1, block_k, ListsOf::keys, key_order);
  return then(listed_query_pass_cost(s, rows, block_q, dlse, pair, order),
              listed_key_pass_cost(head, columns, block_k, pair, order));
}

}  // namespace attest::sparse
