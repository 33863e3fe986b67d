#include "schedules/dense/column_groups.hpp"

#include <algorithm>

namespace attest::schedules {

io::Traffic ColumnGroups::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      TileMap::sums_of(head.rule, s.q.value(), s.k.value(), block_q, 1, Stay::queries);
  const io::Words groups = io::tiles(s.dv.value(), columns), g = std::min(s.dv, io::Words(columns));
  const auto peak = [&](io::Words i, io::Words, io::Words) {
    return s.in(i * s.dk) + HeadShape::real(i * (g + 3) + 1);
  };
  return {s.in(sums.queries * s.dk + sums.tile_keys * (groups * s.dk + s.dv)),
          s.in(s.q * s.dv) + HeadShape::real(s.q),
          sums.largest(HeadShape::real(sums.idle_queries * g), peak)};
}

}  // namespace attest::schedules
