#include "schedules/dense/key_stationary.hpp"

#include <algorithm>

namespace attest::schedules {

template <Walk W>
io::Traffic KeyStationaryOver<W>::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      W::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, Stay::keys);
  const io::Words nz_q = sums.tile_queries, both = s.dk + s.dv;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in((i + j) * both) +
           HeadShape::real(sums.open_words() + record + j * both + i * (s.dk + 2) + 2 * i * j);
  };
  // Keys nobody sees, and queries that see none.
  const io::Words largest_j = std::min(s.k, io::Words(block_k));
  const io::Words alone = std::max(sums.open_words() + largest_j * both,
                                   sums.idle_word() + io::Words(sums.idle_queries) * s.dk);
  io::Traffic traffic = deltas_cost(s, dlse);
  traffic.reads += s.in(sums.keys * both + nz_q * both + (nz_q - sums.queries) * s.dk) +
                   HeadShape::real(2 * nz_q + sums.words() + sums.idle_words) +
                   sums_before(head, s);
  traffic.writes += s.sums(s.k * both) + s.in((nz_q + s.q - sums.queries) * s.dk);
  traffic.peak = io::larger(traffic.peak, sums.largest(HeadShape::real(alone), peak));
  return traffic;
}

template struct KeyStationaryOver<TileMap>;
template struct KeyStationaryOver<TileList>;

io::Traffic Flash1Backward::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      TileMap::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, Stay::keys);
  const io::Words nz_q = sums.tile_queries, both = s.dk + s.dv;
  const auto peak = [&](io::Words i, io::Words j, io::Words) {
    return s.in((i + j) * both) + HeadShape::real(j * both + i * (s.dk + 3)) +
           io::larger(s.in(i * s.dv), HeadShape::real(2 * i * j));
  };
  // Blocks that hold nothing but zeros, or sums that pass on.
  const bool fresh = head.sums == Sums::fresh;
  const io::Words largest_j = std::min(s.k, io::Words(block_k));
  const io::Words alone = std::max(std::min(s.q, io::Words(block_q)) * s.dk,
                                   largest_j * (fresh ? std::max(s.dk, s.dv) : both));
  const io::Words deltas = dlse == kLseGradient ? nz_q : io::Words(0);
  return {s.in(sums.keys * both + nz_q * (2 * s.dk + 2 * s.dv)) +
              HeadShape::real(2 * nz_q + deltas) + sums_before(head, s),
          s.in(s.q * s.dk + nz_q * s.dk) + s.sums(s.k * both) +
              s.sums(fresh ? sums.keys * both : io::Words(0)),
          sums.largest(HeadShape::real(alone), peak)};
}

}  // namespace attest::schedules
