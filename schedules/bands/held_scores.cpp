#include "schedules/bands/held_scores.hpp"

#include <algorithm>

#include "schedules/engine/direction_of.hpp"
#include "schedules/engine/search.hpp"

namespace attest::schedules {

HeldScores::Piece HeldScores::piece_of(const ScoreRule& rule, io::Range seeing, io::Range keys) {
  const io::Range queries = queries_of(rule, seeing, keys);
  return {keys, queries, begun_before(rule, queries, keys.begin), ended_by(rule, queries, keys.end),
          queries.begin - seeing.begin};
}

io::Traffic HeldScores::piece_cost(const HeadShape& s, const ScoreRule& rule, io::Range seeing,
                                   const Piece& piece) {
  const io::Words r = piece.queries.count(), n = piece.keys.count(), before = piece.fresh,
                  ended = piece.ended;
  const io::Amount stays =
      HeadShape::real(band_pairs(rule, piece.queries, piece.keys) + seeing.count() + before);
  const io::Amount word = io::larger(s.in(1), HeadShape::real(piece.fresh > 0 ? 1 : 0));
  io::Traffic traffic;
  traffic.reads = s.in(r * s.dk + n * (s.dk + s.dv)) + HeadShape::real(before * (s.dv + 1));
  traffic.writes = s.in(ended * s.dv) + HeadShape::real(ended + (r - ended) * (s.dv + 1));
  const io::Amount products = HeadShape::real(stays.words - before) + s.in(r + 1);
  traffic.peak = io::larger(io::larger(products, stays + HeadShape::real(r + 1)),
                            stays + HeadShape::real(r) + word);
  return traffic;
}

io::Traffic HeldScores::block_cost(const HeadShape& s, const ScoreRule& rule,
                                   io::Range queries) const {
  const io::Range seeing = queries_of(rule, queries, keys_of(rule, queries));
  const io::Words idle = queries.count() - seeing.count();
  const std::int64_t longest =
      std::max(seeing.begin - queries.begin, after(queries, seeing).count());
  io::Traffic traffic{{}, s.in(idle * s.dv) + HeadShape::real(idle), HeadShape::real(longest)};
  if (seeing.count() == 0) return traffic;
  for (const Pieces& pieces : key_pieces(rule, seeing, held)) {
    const io::Range first{pieces.range.begin, pieces.range.begin + pieces.length};
    const io::Words count = pieces.range.count() / pieces.length;
    traffic =
        then(traffic, times(count, piece_cost(s, rule, seeing, piece_of(rule, seeing, first))));
  }
  return traffic;
}

io::Traffic HeldScores::cost(const ForwardHead& of) const {
  const Banded banded(of, hull);
  const ForwardHead& head = banded.head();
  const HeadShape s = shape_of(head);
  io::Traffic traffic, inner;
  std::int64_t inner_count = 0;  // of the block whose traffic `inner` is
  for_blocks(head.rule, s.q.value(), block_q, [&](io::Range queries, io::Words count) {
    // Away from the ends of the keys one block of a window is like another.
    const bool alike = inner_queries(head.rule, queries);
    if (!alike || queries.count() != inner_count) {
      inner = block_cost(s, head.rule, queries);
      inner_count = alike ? queries.count() : 0;
    }
    traffic = then(traffic, times(count, inner));
  });
  return traffic;
}

void HeldScores::fit(HeldScores& schedule, const attest_problem& problem, io::FastMemory capacity) {
  const attest_problem shorter = shortened(problem);
  fit_held(
      {&schedule.block_q, extent_of(shorter, Extent::queries)},
      {&schedule.held, extent_of(problem, Extent::pairs)}, capacity,
      [&] { return heads_cost(schedule, shorter); }, [&] { return heads_cost(schedule, problem); });
}

}  // namespace attest::schedules
