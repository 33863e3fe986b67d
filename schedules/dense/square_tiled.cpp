#include "schedules/dense/square_tiled.hpp"

#include <algorithm>

namespace attest::schedules {

io::Traffic SquareTiled::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const io::MutableSlowMatrix S("S", q, k, DType::f32, nullptr, k);
  const TiledProduct tile{side, side, side};
  const io::Words bq = std::min(q, side);
  io::Traffic first = tile.cost(score_task(head, S));
  first.writes += HeadShape::real(s.q);
  const io::Amount statistics = HeadShape::real((variant == kPaper ? 1 : 2) * bq);
  first.peak += statistics;
  io::Traffic second = tile.cost({S, head.V, head.O, Form::plain});
  second.reads += HeadShape::real(s.q);
  second.peak += statistics;
  return then(first, second);
}

}  // namespace attest::schedules
