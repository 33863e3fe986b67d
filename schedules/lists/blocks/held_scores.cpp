#include "schedules/lists/blocks/held_scores.hpp"

#include <algorithm>

#include "schedules/engine/direction_of.hpp"
#include "schedules/walks/fit_tiles.hpp"

namespace attest::schedules {
io::Traffic BlockHeldScores::cost(const ForwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), lists = io::tiles(q, block_q);
  io::Words record_words = 2 * io::Words(lists), rows = 0, again = 0, keys = 0;
  io::Amount peak = HeadShape::real(lists > 0 ? 2 : 0);
  const io::Amount offsets = peak;
  const auto add_piece = [&](std::int64_t queries, std::span<const TileList::Sized> tiles,
                             bool first) {
    io::Words stays = 2 * queries;
    for (const TileList::Sized& tile : tiles) {
      keys += tile.keys;
      record_words += tile.record_words;
      stays += io::Words(tile.queries) * tile.keys + tile.record_words;
    }
    const io::Amount kept = HeadShape::real(first ? 0 : queries);
    (first ? rows : again) += queries;
    peak = io::larger(peak, offsets + HeadShape::real(stays) +
                                io::larger(s.in(io::Words(queries) + 1),
                                           kept + HeadShape::real(queries) + s.in(1)));
  };
  TileList::for_lists(head.rule, q, s.k.value(), block_q, block_k, Stay::queries,
                      [&](std::int64_t queries, std::span<const TileList::Sized> tiles) {
                        if (tiles.empty())
                          peak = io::larger(peak, offsets + HeadShape::real(queries));
                        TileList::for_pieces(
                            tiles, held, [&](std::span<const TileList::Sized> piece, bool first) {
                              add_piece(queries, piece, first);
                            });
                      });
  return {s.in((rows + again) * s.dk + keys * (s.dk + s.dv)) +
              HeadShape::real(again * s.dv + record_words),
          s.in(s.q * s.dv) + HeadShape::real(s.q + again * s.dv), peak};
}

void BlockHeldScores::fit(BlockHeldScores& schedule, const attest_problem& problem,
                          io::FastMemory capacity) {
  const PatternGrid grid = grid_of(problem);
  fit_held_tiles(
      {&schedule.block_q, grid.queries, problem.seqlen_q},
      {&schedule.block_k, grid.keys, problem.seqlen_k}, &schedule.held, capacity,
      [&] { return heads_cost(schedule, problem); },
      [&] {
        return TileList::longest(problem, schedule.block_q, schedule.block_k, Stay::queries);
      });
}

}  // namespace attest::schedules
