#include "schedules/lists/blocks/held_keys.hpp"

#include "schedules/engine/direction_of.hpp"
#include "schedules/walks/fit_tiles.hpp"

namespace attest::schedules {
namespace {

// Sums over the pieces of all lists that closed forms need.
struct PieceSums {
  io::Words rows, fresh, keys, again, pairs, record_words;  // rows: of all tiles; keys: of blocks
  io::Words first_tiles;                                    // of their queries
  io::Amount peak;
};

}  // namespace

io::Traffic BlockHeldKeys::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const std::int64_t q = s.q.value(), k = s.k.value(), lists = io::tiles(k, block_k);
  const io::Words offsets = lists > 0 ? 2 : 0;
  PieceSums sum;
  sum.record_words = 2 * io::Words(lists);
  sum.peak = HeadShape::real(std::max(offsets, io::Words(1)));
  const auto add_piece = [&](io::Words keys, std::span<const TileList::Sized> tiles, bool first) {
    io::Words pairs, records, fresh;
    for (const TileList::Sized& tile : tiles) {
      sum.rows += tile.queries;
      pairs += tile.spans;
      records += tile.record_words;
      if (tile.visit != Visit::first) continue;
      fresh += tile.queries;
      sum.first_tiles += 1;
    }
    sum.fresh += fresh;
    sum.pairs += pairs;
    sum.record_words += records;
    (first ? sum.keys : sum.again) += keys;
    const io::Amount scores = io::larger(s.in(keys + 1), HeadShape::real(1));
    const io::Amount delta =
        HeadShape::real(fresh) + io::larger(s.in(keys + 2), HeadShape::real(2));
    const io::Amount dQ = s.in(keys) + HeadShape::real(1);
    const io::Amount of_keys = HeadShape::real(keys) + s.in(1);
    sum.peak =
        io::larger(sum.peak, HeadShape::real(offsets + pairs + records) +
                                 io::larger(io::larger(scores, delta), io::larger(dQ, of_keys)));
  };
  TileList::for_lists(head.rule, q, k, block_q, block_k, Stay::keys,
                      [&](std::int64_t keys, std::span<const TileList::Sized> tiles) {
                        if (tiles.empty()) {
                          sum.peak = io::larger(sum.peak, HeadShape::real(offsets + 1));
                        }
                        TileList::for_pieces(
                            tiles, held, [&](std::span<const TileList::Sized> piece, bool first) {
                              add_piece(keys, piece, first);
                            });
                      });
  if (s.q > sum.fresh) sum.peak = io::larger(sum.peak, HeadShape::real(2));
  const io::Words both = s.dk + s.dv, J = sum.keys + sum.again, later = sum.rows - sum.fresh;
  const io::Words idle_blocks = io::Words(io::tiles(q, block_q)) - sum.first_tiles;
  return {s.in(sum.rows * 2 * both + J * (2 * s.dk + s.dv) + sum.fresh * s.dv + later * s.dk) +
              s.sums(sum.again * both) +
              HeadShape::real(sum.rows + later + sum.pairs + sum.record_words + 1 + idle_blocks) +
              dlse_words(sum.fresh, dlse) + sums_before(head, s),
          s.in((sum.rows + s.q - sum.fresh) * s.dk) + s.sums((J + s.k - sum.keys) * both) +
              HeadShape::real(sum.pairs + sum.fresh),
          sum.peak};
}

void BlockHeldKeys::fit(BlockHeldKeys& schedule, const attest_problem& problem,
                        io::FastMemory capacity) {
  const PatternGrid grid = grid_of(problem);
  fit_held_tiles(
      {&schedule.block_k, grid.keys, problem.seqlen_k},
      {&schedule.block_q, grid.queries, problem.seqlen_q}, &schedule.held, capacity,
      [&] { return heads_cost(schedule, problem); },
      [&] { return TileList::longest(problem, schedule.block_q, schedule.block_k, Stay::keys); });
}

}  // namespace attest::schedules
