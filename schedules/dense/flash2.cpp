#include "schedules/dense/flash2.hpp"

#include <algorithm>

namespace attest::schedules {

template <Walk W>
io::Amount Flash2Over<W>::peak(const HeadShape& s, const WalkSums& sums) {
  return sums.largest({}, [&](io::Words i, io::Words j, io::Words record) {
    return s.in(i * s.dk) + HeadShape::real(sums.open_words() + record + i * (s.dv + 2) + i * j) +
           io::larger(s.in(j * std::max(s.dk, s.dv)), HeadShape::real(1));
  });
}

template <Walk W>
io::Traffic Flash2Over<W>::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      W::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, Stay::queries);
  const io::Amount idle = HeadShape::real(sums.open_words() + sums.idle_queries * s.dv);
  return {
      s.in(sums.queries * s.dk + sums.tile_keys * (s.dk + s.dv)) + HeadShape::real(sums.words()),
      s.in(s.q * s.dv) + HeadShape::real(s.q), io::larger(peak(s, sums), idle)};
}

template struct Flash2Over<TileMap>;
template struct Flash2Over<TileList>;

}  // namespace attest::schedules
