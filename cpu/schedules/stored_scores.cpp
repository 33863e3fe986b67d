#include "cpu/schedules/stored_scores.hpp"

#include <algorithm>

namespace attest::cpu {

io::Traffic WeighedValues::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words i = std::min(s.q, io::Words(rows)), j = std::min(s.dv, io::Words(columns));
  return {HeadShape::real(s.q + s.q * s.k * io::tiles(s.dv.value(), columns)) +
              s.in(s.k * s.dv * io::tiles(s.q.value(), rows)),
          s.in(s.q * s.dv), HeadShape::real(i * j + 2 * i) + s.in(1)};
}

io::Traffic Rank1Tiled::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words i = std::min(s.q, io::Words(block_q)), j = std::min(s.k, io::Words(block_k));
  const io::Traffic scores{s.in(s.q * s.dk * io::tiles(s.k.value(), block_k) +
                                s.k * s.dk * io::tiles(s.q.value(), block_q)),
                           HeadShape::real(s.q * s.k + s.q),
                           HeadShape::real(i * j + 2 * i) + s.in(i + 1)};
  return then(scores, WeighedValues{output_q, output_v}.cost(head));
}

io::Traffic Hybrid::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words i = std::min(s.q, io::Words(block_q));
  const io::Traffic scores{
      s.in(s.q * s.dk + io::Words(io::tiles(s.q.value(), block_q)) * s.k * s.dk),
      HeadShape::real(s.q * s.k + s.q), s.in(i * s.dk) + HeadShape::real(3 * i + 1)};
  return then(scores, WeighedValues{output_q, output_v}.cost(head));
}

}  // namespace attest::cpu
