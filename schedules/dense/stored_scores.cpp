#include "schedules/dense/stored_scores.hpp"

#include <algorithm>

namespace attest::schedules {
namespace {

// Tells whether anything passes by.
bool pairs(const HeadShape& s) { return s.q > 0 && s.k > 0; }

}  // namespace

io::Traffic WeighedValues::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words i = std::min(s.q, io::Words(rows)), j = std::min(s.dv, io::Words(columns));
  return {
      HeadShape::real(s.q + s.q * s.k * io::tiles(s.dv.value(), columns)) +
          s.in(s.k * s.dv * io::tiles(s.q.value(), rows)),
      s.in(s.q * s.dv),
      HeadShape::real(i * j + 2 * i) + (pairs(s) ? HeadShape::real(i) + s.in(1) : io::Amount{})};
}

io::Traffic Rank1Tiled::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words i = std::min(s.q, io::Words(block_q)), j = std::min(s.k, io::Words(block_k));
  const io::Traffic scores{
      s.in(s.q * s.dk * io::tiles(s.k.value(), block_k) +
           s.k * s.dk * io::tiles(s.q.value(), block_q)),
      HeadShape::real(s.q * s.k + s.q),
      HeadShape::real(i * j + 2 * i) + (pairs(s) ? s.in(i + 1) : io::Amount{})};
  return then(scores, WeighedValues{output_q, output_v}.cost(head));
}

io::Traffic Hybrid::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const io::Words i = std::min(s.q, io::Words(block_q));
  const io::Traffic scores{
      s.in(s.q * s.dk + io::Words(io::tiles(s.q.value(), block_q)) * s.k * s.dk),
      HeadShape::real(s.q * s.k + s.q),
      s.in(i * s.dk) + HeadShape::real(pairs(s) ? 3 * i + 1 : 2 * i)};
  return then(scores, WeighedValues{output_q, output_v}.cost(head));
}

}  // namespace attest::schedules
