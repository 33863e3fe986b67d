#include "schedules/dense/flash2.hpp"

namespace attest::cpu {

io::Amount Flash2::peak(const HeadShape& s, const TileMap::Sums& sums) {
  return sums.largest([&](io::Words i, io::Words j) {
    return s.in(i * s.dk) + HeadShape::real(i * (s.dv + 2) + i * j) +
           io::larger(s.in(j * std::max(s.dk, s.dv)), HeadShape::real(1));
  });
}

io::Traffic Flash2::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileMap map(head.rule, s.q.value(), s.k.value(), block_q, block_k);
  const TileMap::Sums sums = map.sums();
  io::Traffic traffic;
  traffic.reads = s.in(sums.queries * s.dk + sums.tile_keys * (s.dk + s.dv));
  traffic.writes = s.in(s.q * s.dv) + HeadShape::real(s.q);
  traffic.peak = io::larger(peak(s, sums), empty_rows_peak(map, s.dv));
  return traffic;
}

}  // namespace attest::cpu
