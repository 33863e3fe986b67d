#include "schedules/lists/blocks/compact_scores.hpp"

#include <algorithm>

namespace attest::schedules {
namespace {

// Returns what both schedules move.
io::Traffic moves(const HeadShape& s, const WalkSums& sums, std::int64_t columns) {
  const io::Words groups = io::tiles(s.dv.value(), columns);
  const io::Words offsets = 2 * io::Words(sums.lists), indices = sums.index_words - offsets;
  return {s.in(s.dk * (sums.tile_queries + sums.tile_keys) + sums.tile_keys * s.dv) +
              HeadShape::real(sums.words() + s.q + offsets + groups * (indices + sums.pairs)),
          HeadShape::real(sums.pairs + s.q) + s.in(s.q * s.dv),
          {}};
}

}  // namespace

io::Traffic BlockSquareTiled::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), side, side, Stay::queries);
  const io::Words x = std::min(s.dk, io::Words(side)), g = std::min(s.dv, io::Words(side));
  const io::Words largest_i = std::min(s.q, io::Words(side)), offsets = sums.open_words();
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return io::larger(HeadShape::real(offsets + 2 * i + record + i * j) +
                          io::larger(s.in((i + j) * x), HeadShape::real(1)),
                      HeadShape::real(offsets + 2 * i + i * g + 1 + i * j) + s.in(j * g));
  };
  io::Traffic traffic = moves(s, sums, side);
  traffic.peak = sums.largest(HeadShape::real(offsets + 2 * largest_i + largest_i * g), peak);
  return traffic;
}

io::Traffic BlockRank1Tiled::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, Stay::queries);
  const io::Words g = std::min(s.dv, io::Words(columns));
  const io::Words largest_i = std::min(s.q, io::Words(block_q)), offsets = sums.open_words();
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return io::larger(HeadShape::real(offsets + 2 * i + record + i * j) +
                          io::larger(s.in(i + 1), HeadShape::real(1)),
                      HeadShape::real(offsets + 3 * i + i * g + 1) + s.in(1));
  };
  io::Traffic traffic = moves(s, sums, columns);
  traffic.peak = sums.largest(HeadShape::real(offsets + 2 * largest_i + largest_i * g), peak);
  return traffic;
}

}  // namespace attest::schedules
