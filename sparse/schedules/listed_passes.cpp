#include "sparse/schedules/listed_passes.hpp"

#include <algorithm>

namespace attest::sparse {

io::Traffic listed_query_pass_cost(const HeadShape& s, const TileList::Sums& sums,
                                   std::int64_t block_q, std::int64_t dlse, StepWords step) {
  const io::Words both = s.dk + s.dv, offsets = sums.lists > 0 ? 2 : 0;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in((i + j) * both) + HeadShape::real(offsets + record + i * (s.dk + 2)) + step(i, j);
  };
  // Every block, listed or not, holds dO and D with O passing, then dQ.
  const io::Words i = std::min(s.q, io::Words(block_q));
  const io::Amount alone = s.in(i * s.dv) + HeadShape::real(offsets + i) +
                           io::larger(s.in(s.q > 0 ? 1 : 0), HeadShape::real(i * s.dk));
  return {s.in(2 * s.q * s.dv + sums.queries * s.dk + sums.tile_keys * both) +
              HeadShape::real(sums.queries + sums.words()) + cpu::dlse_words(s, dlse),
          HeadShape::real(s.q) + s.in(s.q * s.dk), sums.largest(alone, peak)};
}

io::Traffic listed_key_pass_cost(const cpu::BackwardHead& head, const TileList::Sums& sums,
                                 std::int64_t block_k, StepWords step) {
  const HeadShape s = shape_of(head);
  const io::Words both = s.dk + s.dv, nz_q = sums.tile_queries;
  const io::Words offsets = sums.lists > 0 ? 2 : 0;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in((i + j) * both) + HeadShape::real(offsets + record + j * both + 2 * i) + step(i, j);
  };
  const io::Words largest_j = std::min(s.k, io::Words(block_k));
  return {s.in(sums.keys * both + nz_q * both) + HeadShape::real(2 * nz_q + sums.words()) +
              cpu::sums_before(head, s),
          s.sums(s.k * both), sums.largest(HeadShape::real(offsets + largest_j * both), peak)};
}

}  // namespace attest::sparse
