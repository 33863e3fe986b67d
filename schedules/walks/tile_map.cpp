#include "schedules/walks/tile_map.hpp"

#include <algorithm>

namespace attest::schedules {
namespace {

using io::Range;

bool every_pair_visible(const ScoreRule& rule, std::int64_t q, std::int64_t k) {
  const attest_problem& problem = *rule.problem;
  if (problem.mask.boolean != nullptr || q == 0 || k == 0) return false;
  // Both ends of the band grow with the query.
  return visible_keys(problem, rule.batch, 0).end == k &&
         visible_keys(problem, rule.batch, q - 1).begin == 0;
}

bool any_visible(const attest_problem& problem, Range queries, KeySpan keys) {
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    const std::uint8_t* row = problem.mask.boolean + i * problem.seqlen_k;
    if (std::find(row + keys.begin, row + keys.end, std::uint8_t{1}) != row + keys.end) return true;
  }
  return false;
}

// Visible pairs in the tile: the band differs from row to row.
bool tile_visible(const ScoreRule& rule, Range queries, Range keys) {
  for (std::int64_t i = queries.begin; i < queries.end; ++i) {
    const KeySpan span = visible_keys(*rule.problem, rule.batch, i);
    const KeySpan inside{std::max(span.begin, keys.begin), std::min(span.end, keys.end)};
    if (inside.begin < inside.end && any_visible(*rule.problem, {i, i + 1}, inside)) return true;
  }
  return false;
}

}  // namespace

TileMap::TileMap(const ScoreRule& rule, std::int64_t q, std::int64_t k, std::int64_t block_q,
                 std::int64_t block_k, Stay stay)
    : q_(q),
      k_(k),
      block_q_(block_q),
      block_k_(block_k),
      stay_(stay),
      dense_(every_pair_visible(rule, q, k)) {
  if (dense_) return;
  const bool boolean = rule.problem->mask.boolean != nullptr;
  if (boolean) visited_.resize(static_cast<std::size_t>(query_tiles() * key_tiles()));
  for (std::int64_t tile = 0; tile < query_tiles(); ++tile) {
    const Range rows = queries({tile, tile + 1});
    const KeySpan span = visible_keys(*rule.problem, rule.batch, rows.begin, rows.count());
    const std::int64_t first = span.begin / block_k_, end = io::tiles(span.end, block_k_);
    const bool empty = span.begin >= span.end;
    first_.push_back(empty ? io::tiles(span.begin, block_k_) : first);
    end_.push_back(empty ? first_.back() : end);
    if (!boolean || empty) continue;
    for (std::int64_t other = first; other < end; ++other) {
      visited_[static_cast<std::size_t>(tile * key_tiles() + other)] =
          tile_visible(rule, rows, keys({other, other + 1})) ? 1 : 0;
    }
  }
}

Range TileMap::queries(Range tiles) const {
  return {tiles.begin * block_q_, std::min(tiles.end * block_q_, q_)};
}

Range TileMap::keys(Range tiles) const {
  return {tiles.begin * block_k_, std::min(tiles.end * block_k_, k_)};
}

bool TileMap::visited(std::int64_t query_tile, std::int64_t key_tile) const {
  return visited_[static_cast<std::size_t>(query_tile * key_tiles() + key_tile)] != 0;
}

std::vector<Range> TileMap::blocks() const {
  if (!dense_) {
    return stay_ == Stay::queries ? io::single_blocks(q_, block_q_)
                                  : io::single_blocks(k_, block_k_);
  }
  if (stay_ == Stay::queries) return {{0, q_}};
  // Queries meet their first tile with the first keys.
  std::vector<Range> blocks{keys({0, 1})};
  if (block_k_ < k_) blocks.push_back({block_k_, k_});
  return blocks;
}

std::vector<TileRun> TileMap::key_runs(Range rows) const {
  if (dense_) return {{{0, k_}}};
  const std::int64_t tile = rows.begin / block_q_;
  const std::int64_t first = first_[static_cast<std::size_t>(tile)];
  const std::int64_t end = end_[static_cast<std::size_t>(tile)];
  if (first == end) return {};
  if (visited_.empty()) return {{keys({first, end})}};
  std::vector<TileRun> runs;
  for (std::int64_t other = first; other < end; ++other) {
    if (!visited(tile, other)) continue;
    if (!runs.empty() && runs.back().rows.end == other) {
      ++runs.back().rows.end;
    } else {
      runs.push_back({{other, other + 1}});
    }
  }
  for (TileRun& run : runs) run.rows = keys(run.rows);
  return runs;
}

std::vector<TileRun> TileMap::query_runs(Range columns) const {
  const std::int64_t tile = columns.begin / block_k_;
  if (dense_) return {{{0, q_}, tile == 0 ? Visit::first : Visit::later}};
  std::vector<TileRun> runs;
  if (visited_.empty()) {
    // first_ and end_ ascend.
    const auto lower = std::upper_bound(end_.begin(), end_.end(), tile) - end_.begin();
    const auto middle = std::lower_bound(first_.begin(), first_.end(), tile) - first_.begin();
    const auto upper = std::upper_bound(first_.begin(), first_.end(), tile) - first_.begin();
    if (lower < middle) runs.push_back({queries({lower, middle}), Visit::later});
    const auto fresh = std::max(lower, middle);
    if (fresh < upper) runs.push_back({queries({fresh, upper}), Visit::first});
    return runs;
  }
  for (std::int64_t other = 0; other < query_tiles(); ++other) {
    if (!visited(other, tile)) continue;
    std::int64_t earlier = 0;
    while (!visited(other, earlier)) ++earlier;
    const Visit visit = earlier == tile ? Visit::first : Visit::later;
    const Range rows = queries({other, other + 1});
    if (!runs.empty() && runs.back().rows.end == rows.begin && runs.back().visit == visit) {
      runs.back().rows.end = rows.end;
    } else {
      runs.push_back({rows, visit});
    }
  }
  return runs;
}

std::vector<Range> TileMap::idle_queries() const {
  std::vector<Range> idle;
  if (dense_) return idle;
  for (const Range& rows : io::single_blocks(q_, block_q_)) {
    if (key_runs(rows).empty()) idle.push_back(rows);
  }
  return idle;
}

WalkSums TileMap::sums() const {
  WalkSums sums;
  io::Words tiles[2][2];  // of the last queries, of the last keys
  if (dense_) {
    const io::Words more_q = query_tiles() - 1, more_k = key_tiles() - 1;
    sums.tile_queries = (more_k + 1) * q_;
    sums.tile_keys = (more_q + 1) * k_;
    sums.pairs = io::Words(q_) * k_;
    sums.queries = q_;
    sums.keys = k_;
    tiles[0][0] = more_q * more_k;
    tiles[0][1] = more_q;
    tiles[1][0] = more_k;
    tiles[1][1] = 1;
  } else {
    add_tiles(sums, tiles);
  }
  const Range last_q = queries({query_tiles() - 1, query_tiles()});
  const Range last_k = keys({key_tiles() - 1, key_tiles()});
  for (const int row : {0, 1}) {
    for (const int column : {0, 1}) {
      if (tiles[row][column] == 0) continue;
      sums.shapes.push_back(
          {{row == 1 ? last_q.count() : block_q_, column == 1 ? last_k.count() : block_k_},
           tiles[row][column]});
    }
  }
  return sums;
}

void TileMap::add_tiles(WalkSums& sums, io::Words (&tiles)[2][2]) const {
  std::vector<std::uint8_t> used(static_cast<std::size_t>(key_tiles()));
  std::int64_t covered = 0;  // keys before it are known to be used, with a band
  for (const Range& rows : io::single_blocks(q_, block_q_)) {
    const std::vector<TileRun> runs = key_runs(rows);
    if (runs.empty()) {
      sums.idle_queries = std::max(sums.idle_queries, rows.count());
    } else {
      sums.queries += rows.count();
    }
    for (const auto& [run, visit] : runs) {
      const std::int64_t count = io::tiles(run.count(), block_k_), ends = run.end == k_ ? 1 : 0;
      sums.tile_queries += io::Words(count) * rows.count();
      sums.tile_keys += run.count();
      sums.pairs += io::Words(rows.count()) * run.count();
      tiles[rows.end == q_ ? 1 : 0][1] += ends;
      tiles[rows.end == q_ ? 1 : 0][0] += count - ends;
      if (visited_.empty()) {
        sums.keys += std::max<std::int64_t>(run.end - std::max(run.begin, covered), 0);
        covered = std::max(covered, run.end);
      } else {
        std::fill_n(used.begin() + run.begin / block_k_, count, std::uint8_t{1});
      }
    }
  }
  for (std::int64_t tile = 0; tile < key_tiles(); ++tile) {
    if (used[static_cast<std::size_t>(tile)] != 0) sums.keys += keys({tile, tile + 1}).count();
  }
}

}  // namespace attest::schedules
