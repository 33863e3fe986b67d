#include "sparse/schedules/csr_two_pass.hpp"

namespace attest::sparse {

io::Traffic CsrTwoPass::cost(const cpu::BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const StepWords pair = [](io::Words, io::Words) { return HeadShape::real(2); };
  const auto rows = TileList::sums_of(head.rule, q, k, block_q, 1, ListsOf::queries);
  const auto columns = TileList::sums_of(head.rule, q, k, 1, block_k, ListsOf::keys);
  return then(listed_query_pass_cost(s, rows, block_q, dlse, pair),
              listed_key_pass_cost(head, columns, block_k, pair));
}

}  // namespace attest::sparse
