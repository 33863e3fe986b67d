#include "schedules/lists/blocks/block_forward.hpp"

#include <algorithm>

namespace attest::sparse {

io::Traffic BlockFlash2::cost(const cpu::ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileList::Sums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, ListsOf::queries);
  const io::Words offsets = sums.lists > 0 ? 2 : 0;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in(i * s.dk) + HeadShape::real(offsets + record + i * (s.dv + 2) + i * j) +
           io::larger(s.in(j * std::max(s.dk, s.dv)), HeadShape::real(1));
  };
  return {
      s.in(sums.queries * s.dk + sums.tile_keys * (s.dk + s.dv)) + HeadShape::real(sums.words()),
      s.in(s.q * s.dv) + HeadShape::real(s.q),
      sums.largest(HeadShape::real(offsets + sums.idle_queries * s.dv), peak)};
}

io::Traffic BlockFlash1::cost(const cpu::ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileList::Sums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, ListsOf::keys);
  const io::Words nz_q = sums.tile_queries, written = s.q + nz_q;
  const io::Words offsets = sums.lists > 0 ? 2 : 0;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in(j * (s.dk + s.dv) + i * s.dk) +
           HeadShape::real(offsets + record + i * (s.dv + 2) + i * j + 1);
  };
  const io::Words filled = std::min(s.q, io::Words(block_q)) * s.dv;
  return {s.in(sums.keys * (s.dk + s.dv) + nz_q * (s.dk + s.dv)) +
              HeadShape::real(2 * nz_q + sums.words()),
          s.in(written * s.dv) + HeadShape::real(2 * written),
          sums.largest(HeadShape::real(std::max(offsets, filled)), peak)};
}

}  // namespace attest::sparse
