#include "schedules/dense/two_pass.hpp"

namespace attest::schedules {

template <Walk W>
io::Traffic TwoPassOver<W>::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const StepWords tiles = [](io::Words i, io::Words j) { return HeadShape::real(2 * i * j); };
  const WalkSums rows = W::sums_of(head.rule, q, k, block_q, block_k, Stay::queries);
  const WalkSums columns = W::sums_of(head.rule, q, k, pass_q, pass_k, Stay::keys);
  return then(query_pass_cost(s, rows, block_q, dlse, tiles),
              key_pass_cost(head, columns, pass_k, tiles));
}

template struct TwoPassOver<TileMap>;
template struct TwoPassOver<TileList>;

io::Traffic TwoPassRow::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const WalkSums rows = TileMap::sums_of(head.rule, q, k, block_q, 1, Stay::queries);
  const WalkSums columns = TileMap::sums_of(head.rule, q, k, 1, block_k, Stay::keys);
  return then(query_pass_cost(s, rows, block_q, dlse, pair_words),
              key_pass_cost(head, columns, block_k, pair_words));
}

}  // namespace attest::schedules
