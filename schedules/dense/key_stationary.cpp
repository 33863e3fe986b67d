#include "schedules/dense/key_stationary.hpp"

#include <algorithm>

namespace attest::cpu {

io::Traffic KeyStationary::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileMap map(head.rule, s.q.value(), s.k.value(), block_q, block_k);
  const TileMap::Sums sums = map.sums();
  const io::Words nz_q = sums.tile_queries, both = s.dk + s.dv;
  const auto peak = [&](io::Words i, io::Words j) {
    return s.in((i + j) * both) + HeadShape::real(j * both + i * (s.dk + 2) + 2 * i * j);
  };
  const io::Words largest_j = std::min(s.k, io::Words(block_k));
  io::Traffic traffic = deltas_cost(s, dlse);
  traffic.reads += s.in(sums.keys * both + nz_q * both + (nz_q - sums.queries) * s.dk) +
                   HeadShape::real(2 * nz_q) + sums_before(head, s);
  traffic.writes += s.sums(s.k * both) + s.in((nz_q + s.q - sums.queries) * s.dk);
  traffic.peak = io::larger(io::larger(traffic.peak, sums.largest(peak)),
                            io::larger(HeadShape::real(largest_j * both),  // keys nobody sees
                                       empty_rows_peak(map, s.dk)));
  return traffic;
}

io::Traffic Flash1Backward::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const TileMap::Sums sums = TileMap(head.rule, s.q.value(), s.k.value(), block_q, block_k).sums();
  const io::Words nz_q = sums.tile_queries, both = s.dk + s.dv;
  const auto peak = [&](io::Words i, io::Words j) {
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
          io::larger(sums.largest(peak), HeadShape::real(alone))};
}

}  // namespace attest::cpu
