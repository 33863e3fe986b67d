#include "schedules/dense/passes.hpp"

#include <algorithm>

namespace attest::schedules {

io::Traffic query_pass_cost(const HeadShape& s, const WalkSums& sums, std::int64_t block_q,
                            std::int64_t dlse, StepWords step, std::int64_t order) {
  const io::Words both = s.dk + s.dv, offsets = sums.open_words();
  const io::Words place = order == kGrouped ? 1 : 0;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in((i + j) * both) + HeadShape::real(offsets + record + i * (s.dk + 2 + place)) +
           step(i, j);
  };
  // Every block, listed or not, holds dO and D with O passing, then dQ; gathered ones without a
  // tile first the one, query by query, and then the other.
  const io::Words i = std::min(s.q, io::Words(block_q));
  const io::Words one = std::min(i, io::Words(1));
  const io::Amount word = s.in(one);
  const io::Amount together =
      s.in(i * s.dv) + HeadShape::real(offsets + i) + io::larger(word, HeadShape::real(i * s.dk));
  const io::Amount passing =
      io::larger(word, HeadShape::real(dlse == kLseGradient ? one : io::Words(0)));
  const io::Amount apart =
      HeadShape::real(offsets + i) +
      io::larger(s.in(one * s.dv) + HeadShape::real(one) + passing, HeadShape::real(one * s.dk));
  const io::Amount alone = order == kGrouped ? apart : together;
  return {s.in(2 * s.q * s.dv + sums.queries * s.dk + sums.tile_keys * both) +
              HeadShape::real(sums.queries + sums.words() + place * s.q) + dlse_words(s.q, dlse),
          HeadShape::real(s.q) + s.in(s.q * s.dk), sums.largest(alone, peak)};
}

io::Traffic key_pass_cost(const BackwardHead& head, const WalkSums& sums, std::int64_t block_k,
                          StepWords step, std::int64_t order) {
  const HeadShape s = shape_of(head);
  const io::Words both = s.dk + s.dv, nz_q = sums.tile_queries;
  const io::Words offsets = sums.open_words(), place = order == kGrouped ? 1 : 0;
  const auto peak = [&](io::Words i, io::Words j, io::Words record) {
    return s.in((i + j) * both) + HeadShape::real(offsets + record + j * (both + place) + 2 * i) +
           step(i, j);
  };
  const io::Words j = std::min(s.k, io::Words(block_k));
  // Words that blocks without a tile hold, gathered ones key by key.
  const io::Words alone =
      offsets + (order == kGrouped ? j + std::min(j, io::Words(1)) * both : j * both);
  return {s.in(sums.keys * both + nz_q * both) +
              HeadShape::real(2 * nz_q + sums.words() + place * s.k) + sums_before(head, s),
          s.sums(s.k * both), sums.largest(HeadShape::real(alone), peak)};
}

}  // namespace attest::schedules
