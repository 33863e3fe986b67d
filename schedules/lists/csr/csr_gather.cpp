#include "schedules/lists/csr/csr_gather.hpp"

#include <algorithm>

namespace attest::schedules {

io::Traffic CsrGather::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const bool grouped = order == kGrouped;
  std::vector<std::int64_t> places;
  if (grouped) {
    places = RowOrder::grouped(head.rule, q, k, block_q, Stay::queries).rows();
  }
  const WalkSums sums = TileList::sums_of(head.rule, q, k, block_q, 1, Stay::queries, places);
  const io::Words offsets = sums.open_words(), row_words = grouped ? 1 : 0;
  const io::Amount key =
      grouped ? io::larger(s.in(std::max(s.dk, s.dv)), HeadShape::real(1)) : HeadShape::real(1);
  const auto peak = [&](io::Words i, io::Words, io::Words record) {
    return s.in(i * s.dk) + HeadShape::real(offsets + record + i * (s.dv + 3 + row_words)) + key;
  };
  // A block that sees nothing stores zeros, query by query if they lie apart; the words of its
  // places are there while the list is found empty.
  const io::Words idle = sums.idle_queries;
  const io::Words alone = grouped && idle > 0 ? idle + s.dv : idle * s.dv;
  return {s.in(sums.queries * s.dk + sums.tile_keys * (s.dk + s.dv)) +
              HeadShape::real(sums.words() + row_words * s.q),
          s.in(s.q * s.dv) + HeadShape::real(s.q),
          sums.largest(HeadShape::real(offsets + alone), peak)};
}

}  // namespace attest::schedules
