#include "schedules/lists/blocks/compact_gradients.hpp"

namespace attest::schedules {

template <class Pairs, class Kind>
io::Traffic CompactGradients::cost(const BackwardHead& head, const Pairs& pairs,
                                   const Kind& product) const {
  const HeadShape s = shape_of(head);
  const auto sums_of = [&](Stay of) {
    return TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, of);
  };
  const WalkSums rows = sums_of(Stay::queries), keys = sums_of(Stay::keys);
  const io::Words both = s.dk + s.dv, nz = rows.pairs, nz_q = rows.tile_queries;
  const io::Words row_offsets = 2 * io::Words(rows.lists);
  const io::Words key_offsets = 2 * io::Words(keys.lists);
  const io::Words tiles = rows.index_words - row_offsets;
  const io::Words groups_k = io::tiles(s.dk.value(), columns),
                  groups_v = io::tiles(s.dv.value(), columns);
  const io::Words x = std::min(s.dk, io::Words(columns)), v = std::min(s.dv, io::Words(columns));
  const io::Words g = std::max(x, v);
  const io::Words i_most = std::min(s.q, io::Words(block_q));
  const io::Words j_most = std::min(s.k, io::Words(block_k));

  io::Traffic traffic = pairs.begin_cost(s, dlse);
  // P and dS, then dQ, then dK and dV.
  traffic.reads +=
      pairs.reads(s, rows, dlse) + HeadShape::real(rows.words() + nz + row_offsets + tiles);
  traffic.reads +=
      s.in(rows.tile_keys * s.dk) + HeadShape::real(row_offsets + groups_k * (nz + tiles));
  traffic.reads += s.in(nz_q * both) +
                   HeadShape::real(key_offsets + (groups_k + groups_v) * (nz + 2 * tiles)) +
                   sums_before(head, s);
  traffic.writes += HeadShape::real(2 * nz) + s.in(s.q * s.dk) + s.sums(s.k * both);
  const ProductWords words{HeadShape::real(1), s.in(1)};
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    const io::Amount P = HeadShape::real(2 + record) + pairs.probabilities_peak(s, i, j);
    const io::Amount dS = HeadShape::real(3) + pairs.gradients_peak(s, i, j);
    const io::Amount dQ = HeadShape::real(3 + i * x) + product.operands(words, i, x, j);
    const io::Amount dKV = HeadShape::real(4 + j * g) + product.operands(words, j, g, i);
    return io::larger(io::larger(P, dS), io::larger(dQ, dKV));
  };
  const io::Words of_queries = rows.lists > 0 ? 2 + i_most * x : 0;
  const io::Words of_keys = keys.lists > 0 ? 2 + j_most * g : 0;
  traffic.peak =
      io::larger(traffic.peak, rows.largest(HeadShape::real(std::max(of_queries, of_keys)), peak));
  return traffic;
}

io::Traffic BlockSquareTiledBackward::cost(const BackwardHead& head) const {
  return phases().cost(head, PairTiles<TiledProduct>{product()}, product());
}

io::Traffic BlockRank1TiledBackward::cost(const BackwardHead& head) const {
  return phases().cost(head, PairTiles<Rank1Product>{product()}, product());
}

io::Traffic BlockQueryStationaryP::cost(const BackwardHead& head) const {
  return phases().cost(head, PairColumns{}, product());
}

}  // namespace attest::schedules
