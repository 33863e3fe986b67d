#include "schedules/dense/two_pass.hpp"

#include <algorithm>

namespace attest::cpu {

template <class Inner>
io::Traffic TwoPass::query_pass_cost(const HeadShape& s, const TileMap& map, std::int64_t block_q,
                                     std::int64_t dlse, const Inner& inner) {
  const TileMap::Sums sums = map.sums();
  const io::Words both = s.dk + s.dv;
  const auto peak = [&](io::Words i, io::Words j) {
    return s.in((i + j) * both) + HeadShape::real(i * (s.dk + 2)) + inner(i, j);
  };
  // Every block, seen or not, holds dO and D with O passing, then dQ.
  const io::Words i = std::min(s.q, io::Words(block_q));
  const io::Amount resident = s.in(i * s.dv) + HeadShape::real(i) +
                              io::larger(s.in(s.q > 0 ? 1 : 0), HeadShape::real(i * s.dk));
  return {s.in(2 * s.q * s.dv + sums.queries * s.dk + sums.tile_keys * both) +
              HeadShape::real(sums.queries) + dlse_words(s.q, dlse),
          HeadShape::real(s.q) + s.in(s.q * s.dk), io::larger(sums.largest(peak), resident)};
}

template <class Inner>
io::Traffic TwoPass::key_pass_cost(const BackwardHead& head, const TileMap& map,
                                   std::int64_t block_k, const Inner& inner) {
  const HeadShape s = shape_of(head);
  const TileMap::Sums sums = map.sums();
  const io::Words both = s.dk + s.dv, nz_q = sums.tile_queries;
  const auto peak = [&](io::Words i, io::Words j) {
    return s.in((i + j) * both) + HeadShape::real(j * both + 2 * i) + inner(i, j);
  };
  const io::Words largest_j = std::min(s.k, io::Words(block_k));
  return {s.in(sums.keys * both + nz_q * both) + HeadShape::real(2 * nz_q) + sums_before(head, s),
          s.sums(s.k * both), io::larger(sums.largest(peak), HeadShape::real(largest_j * both))};
}

io::Traffic TwoPass::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const auto tiles = [](io::Words i, io::Words j) { return HeadShape::real(2 * i * j); };
  return then(query_pass_cost(s, TileMap(head.rule, q, k, block_q, block_k), block_q, dlse, tiles),
              key_pass_cost(head, TileMap(head.rule, q, k, pass_q, pass_k), pass_k, tiles));
}

io::Traffic TwoPassRow::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value();
  const auto pair = [](io::Words, io::Words) { return HeadShape::real(2); };
  return then(
      TwoPass::query_pass_cost(s, TileMap(head.rule, q, k, block_q, 1), block_q, dlse, pair),
      TwoPass::key_pass_cost(head, TileMap(head.rule, q, k, 1, block_k), block_k, pair));
}

}  // namespace attest::cpu
