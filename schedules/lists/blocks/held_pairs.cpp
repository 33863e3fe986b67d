#include "schedules/lists/blocks/held_pairs.hpp"

#include <cmath>

namespace attest::schedules {
namespace {

using io::Range;

// A side of a tile: what it keeps whole and what it may lose, at the end where it meets the next
// tile of its pair.
struct Side {
  Range whole, cut;
  Range all() const { return {std::min(whole.begin, cut.begin), std::max(whole.end, cut.end)}; }
};

// The sides of a grid in pairs. A side no longer than what it would lose loses nothing.
std::vector<std::vector<Side>> side_pairs(Range extent, std::int64_t side, std::int64_t cut) {
  std::vector<std::vector<Side>> pairs;
  bool even = true;
  for (std::int64_t begin = extent.begin; begin < extent.end; even = !even) {
    const Range all{begin, begin + std::min(side, extent.end - begin)};
    begin = all.end;
    const std::int64_t lost = cut < all.count() ? cut : 0;
    if (even) {
      pairs.push_back({{{all.begin, all.end - lost}, {all.end - lost, all.end}}});
    } else {
      pairs.back().push_back({{all.begin + lost, all.end}, {all.begin, all.begin + lost}});
    }
  }
  return pairs;
}

// The least whole number whose square is no less. Requires: 0 <= square <= 2^62.
std::int64_t root_above(std::int64_t square) {
  auto root = static_cast<std::int64_t>(std::sqrt(static_cast<double>(square)));
  while (root > 0 && (root - 1) * (root - 1) >= square) --root;
  while (root * root < square) ++root;
  return root;
}

// Returns what the sides of a pair lose, next to each other.
Range lost_by(const std::vector<Side>& sides) {
  Range lost = sides.front().cut;
  if (sides.size() == 2 && sides.back().cut.count() > 0) lost.end = sides.back().cut.end;
  return lost;
}

// Words, of four bytes, that a peak has more than fit.
std::int64_t words_over(io::Amount peak, io::FastMemory capacity) {
  const std::int64_t words = peak.words.value() - capacity.words;
  const std::int64_t bytes = peak.bytes.value() - capacity.bytes;
  return std::max({words, bytes > 0 ? io::tiles(bytes, 4) : 0, std::int64_t{0}});
}

}  // namespace

std::int64_t CutGrid::cut() const {
  constexpr std::int64_t kMostPairs = std::int64_t{1} << 62;
  const std::int64_t pairs = side_q > kMostPairs / side_k ? kMostPairs : side_q * side_k;
  const std::int64_t most = std::min(side_q, side_k) - 1;
  return pairs <= held ? 0 : std::min(most, root_above(pairs - held));
}

std::vector<CutGrid::Place> CutGrid::places(Range queries, Range keys) const {
  std::vector<Place> list;
  const auto rows = side_pairs(queries, side_q, cut()), columns = side_pairs(keys, side_k, cut());
  for (const std::vector<Side>& row_pair : rows) {
    for (const std::vector<Side>& column_pair : columns) {
      for (const Side& row : row_pair) {
        for (const Side& column : column_pair) {
          CutTile tile{row.whole, row.cut, column.whole, column.cut};
          // One that keeps its rows or its columns keeps its corner.
          if (row.cut.count() == 0 || column.cut.count() == 0) {
            tile = {row.all(), {}, column.all(), {}};
          }
          list.push_back(
              {tile, column.all().begin == keys.begin, row.all().begin == queries.begin});
        }
      }
      const Range lost_rows = lost_by(row_pair), lost_columns = lost_by(column_pair);
      if (lost_rows.count() == 0 || lost_columns.count() == 0) continue;
      list.push_back({{lost_rows, {}, lost_columns, {}}, false, false});
    }
  }
  return list;
}

io::Traffic BlockHeldPairs::cost(const BackwardHead& head) const {
  const HeadShape s = shape_of(head);
  const WalkSums sums =
      TileList::sums_of(head.rule, s.q.value(), s.k.value(), block_q, block_k, Stay::keys);
  io::Words R = 0, J = 0;
  const io::Words offsets = sums.open_words();
  io::Amount peak;
  if (s.k > sums.keys) peak = HeadShape::real(offsets + 1);
  if (s.q > sums.queries) peak = io::larger(peak, HeadShape::real(2));
  peak = io::larger(peak, HeadShape::real(std::max(offsets, io::Words(1))));
  for (const WalkSums::Counted& of : sums.shapes) {
    const WalkSums::Shape& shape = of.shape;
    for (const CutGrid::Place& place : grid().places({0, shape.queries}, {0, shape.keys})) {
      const io::Words i = place.tile.queries();
      R += of.tiles * i;
      J += of.tiles * place.tile.keys();
      peak =
          io::larger(peak, HeadShape::real(offsets + shape.record_words + place.tile.pairs() + i) +
                               s.in(i + 1));
    }
  }
  const io::Words both = s.dk + s.dv, ra = sums.queries, kc = sums.keys;
  io::Traffic traffic;
  traffic.reads =
      s.in(R * (2 * s.dk + 2 * s.dv) + J * (2 * s.dk + s.dv) + (R - ra) * s.dk + ra * s.dv) +
      s.sums((J - kc) * both) +
      HeadShape::real(R + (R - ra) + sums.pairs + sums.words() + sums.idle_words) +
      dlse_words(ra, dlse) + sums_before(head, s);
  traffic.writes = s.in((R + s.q - ra) * s.dk) + s.sums((J + s.k - kc) * both) +
                   HeadShape::real(sums.pairs + ra);
  traffic.peak = peak;
  return traffic;
}

void BlockHeldPairs::fit(BlockHeldPairs& schedule, const attest_problem& problem,
                         io::FastMemory capacity) {
  constexpr std::int64_t kGrids = 16;    // that are tried
  constexpr std::int64_t kNoBlock = 32;  // side of a listed tile of a pattern without blocks
  const BlockHeldPairs given = schedule;
  const auto set = [](std::int64_t& tile, std::int64_t value) {
    if (tile == 0) tile = value;
  };
  const PatternGrid block = grid_of(problem);
  set(schedule.block_q, block.queries == 1 ? kNoBlock : block.queries);
  set(schedule.block_k, block.keys == 1 ? kNoBlock : block.keys);
  const BlockHeldPairs listed = schedule;
  schedule = given;
  for (std::int64_t* tile :
       {&schedule.block_q, &schedule.block_k, &schedule.side_q, &schedule.side_k, &schedule.held}) {
    *tile = std::max<std::int64_t>(*tile, 1);
  }
  // A tile loses no more than a quarter of its pairs.
  const auto fullest = 4.0 / 3 * static_cast<double>(std::min(capacity.words, capacity.bytes));
  const auto first = static_cast<std::int64_t>(std::sqrt(
      static_cast<double>(listed.block_q) * static_cast<double>(listed.block_k) / fullest));
  std::optional<io::Words> fewest;
  for (std::int64_t tiles = first + 1; tiles <= first + kGrids; ++tiles) {
    BlockHeldPairs tried = listed;
    set(tried.side_q, io::tiles(listed.block_q, tiles));
    set(tried.side_k, io::tiles(listed.block_k, tiles));
    set(tried.held, tried.side_q * tried.side_k);
    std::int64_t cut = 0;
    if (given.held == 0) {
      cut = root_above(words_over(heads_cost(tried, problem).peak, capacity));
      if (cut > std::min(tried.side_q, tried.side_k) / 2) continue;
      tried.held -= cut * cut;
    }
    const io::Traffic traffic = heads_cost(tried, problem);
    if (!fits(traffic.peak, capacity)) continue;
    if (!fewest || traffic.total_words() < *fewest) {
      schedule = tried;
      fewest = traffic.total_words();
    }
    if (cut == 0) break;  // smaller tiles move more
  }
}

}  // namespace attest::schedules
