#include "sparse/schedules/held_scores.hpp"

#include <algorithm>

namespace attest::sparse {

io::Traffic BlockHeldScores::cost(const cpu::ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileList::Sums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, ListsOf::queries);
  const io::Words offsets = sums.lists > 0 ? 2 : 0;
  io::Words peak = offsets + sums.idle_queries;
  for (const TileList::Block& block : sums.blocks) {
    peak = std::max(peak, offsets + block.words + 2 * block.queries + 1);
  }
  return {
      s.in(sums.queries * s.dk + sums.tile_keys * (s.dk + s.dv)) + HeadShape::real(sums.words()),
      s.in(s.q * s.dv) + HeadShape::real(s.q), HeadShape::real(peak)};
}

}  // namespace attest::sparse
