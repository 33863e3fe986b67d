#include "sparse/schedules/compact_gradients.hpp"

namespace attest::sparse {

io::Traffic BlockSquareTiledBackward::cost(const cpu::BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const auto sums_of = [&](ListsOf of) {
    return TileList::sums_of(head.rule, s.q.value(), s.k.value(), side, side, of);
  };
  const TileList::Sums rows = sums_of(ListsOf::queries), columns = sums_of(ListsOf::keys);
  const io::Words b = side, both = s.dk + s.dv, nz = rows.pairs, nz_q = rows.tile_queries;
  const io::Words row_offsets = 2 * io::Words(rows.lists);
  const io::Words column_offsets = 2 * io::Words(columns.lists);
  const io::Words tiles = rows.index_words - row_offsets;
  const io::Words groups_k = io::tiles(s.dk.value(), side),
                  groups_v = io::tiles(s.dv.value(), side);
  const io::Words x = std::min(s.dk, b), v = std::min(s.dv, b), g = std::max(x, v);
  const io::Words i_most = std::min(s.q, b), j_most = std::min(s.k, b);

  io::Traffic traffic = cpu::deltas_cost(s, dlse);
  // P and dS, then dQ, then dK and dV.
  traffic.reads += s.in(both * (nz_q + rows.tile_keys)) +
                   HeadShape::real(rows.words() + 2 * s.q + nz + row_offsets + tiles);
  traffic.reads +=
      s.in(rows.tile_keys * s.dk) + HeadShape::real(row_offsets + groups_k * (nz + tiles));
  traffic.reads += s.in(nz_q * both) +
                   HeadShape::real(column_offsets + (groups_k + groups_v) * (nz + 2 * tiles)) +
                   cpu::sums_before(head, s);
  traffic.writes += HeadShape::real(2 * nz) + s.in(s.q * s.dk) + s.sums(s.k * both);
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    const io::Amount P = HeadShape::real(2 + i + record + i * j) + s.in((i + j) * x);
    const io::Amount dS =
        HeadShape::real(3 + i + i * j) + io::larger(s.in((i + j) * v), HeadShape::real(1));
    const io::Amount dQ = HeadShape::real(3 + i * x + i * j) + s.in(j * x);
    const io::Amount dKV = HeadShape::real(4 + j * g + i * j) + s.in(i * g);
    return io::larger(io::larger(P, dS), io::larger(dQ, dKV));
  };
  const io::Words of_queries = rows.lists > 0 ? 2 + std::max(i_most, i_most * x) : 0;
  const io::Words of_keys = columns.lists > 0 ? 2 + j_most * g : 0;
  traffic.peak =
      io::larger(traffic.peak, rows.largest(HeadShape::real(std::max(of_queries, of_keys)), peak));
  return traffic;
}

}  // namespace attest::sparse
