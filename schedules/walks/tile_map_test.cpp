#include "schedules/walks/tile_map.hpp"

#include <map>
#include <set>
#include <string>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest::schedules {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

// Visited tiles by looking at every pair.
std::set<Pair> visited_tiles(const Problem& problem, const Sequence& sequence, std::int64_t bq,
                             std::int64_t bk) {
  std::set<Pair> tiles;
  for (std::int64_t i = 0; i < sequence.q_length; ++i) {
    for (std::int64_t j = 0; j < sequence.k_length; ++j) {
      if (problem.mask.visible(sequence, i, j)) tiles.insert({i / bq, j / bk});
    }
  }
  return tiles;
}

std::set<Pair> tiles_of_groups(const std::vector<io::Range>& groups, std::int64_t block) {
  std::set<Pair> tiles;
  for (const io::Range& group : groups) {
    for (std::int64_t first = group.begin; first < group.end; first += block) {
      tiles.insert({first, std::min(first + block, group.end)});
    }
  }
  return tiles;
}

void check(const Problem& problem, std::int64_t batch, std::int64_t bq, std::int64_t bk) {
  const Sequence sequence = problem.sequences()[static_cast<std::size_t>(batch)];
  const AbiProblem form(problem, 1);
  const std::int64_t q = sequence.q_length, k = sequence.k_length;
  const ScoreRule rule{form.get(), batch_of(*form.get(), batch), 0};
  const TileMap by_queries(rule, q, k, bq, bk, Stay::queries);
  const TileMap by_keys(rule, q, k, bq, bk, Stay::keys);
  const std::set<Pair> expected = visited_tiles(problem, sequence, bq, bk);
  std::set<Pair> by_query, by_key;
  for (const Pair& rows : tiles_of_groups(by_queries.blocks(), bq)) {
    for (const auto& [run, visit] : by_queries.runs({rows.first, rows.second})) {
      REQUIRE(run.begin % bk == 0);
      REQUIRE((run.end % bk == 0 || run.end == k));
      for (std::int64_t j = run.begin; j < run.end; j += bk) {
        by_query.insert({rows.first / bq, j / bk});
      }
    }
  }
  std::set<std::int64_t> met;
  for (const Pair& columns : tiles_of_groups(by_keys.blocks(), bk)) {
    for (const TileRun& run : by_keys.runs({columns.first, columns.second})) {
      for (std::int64_t i = run.rows.begin; i < run.rows.end; i += bq) {
        by_key.insert({i / bq, columns.first / bk});
        CHECK(met.insert(i / bq).second == (run.visit == Visit::first));
      }
    }
  }
  CHECK(by_query == expected);
  CHECK(by_key == expected);
  io::Words tile_queries, tile_keys, pairs;
  std::set<std::int64_t> rows, columns;
  std::map<Pair, io::Words> shapes, got_shapes;
  const auto extent = [](std::int64_t tile, std::int64_t block, std::int64_t end) {
    return std::min(block, end - tile * block);
  };
  for (const auto& [i, j] : expected) {
    tile_queries += extent(i, bq, q);
    tile_keys += extent(j, bk, k);
    pairs += io::Words(extent(i, bq, q)) * extent(j, bk, k);
    rows.insert(i);
    columns.insert(j);
    shapes[{extent(i, bq, q), extent(j, bk, k)}] += 1;
  }
  io::Words queries, keys, idle;
  for (const std::int64_t i : rows) queries += extent(i, bq, q);
  for (const std::int64_t j : columns) keys += extent(j, bk, k);
  const WalkSums sums = by_queries.sums();
  CHECK(sums.tile_queries == tile_queries);
  CHECK(sums.tile_keys == tile_keys);
  CHECK(sums.pairs == pairs);
  CHECK(sums.words() == 0);
  CHECK(sums.queries == queries);
  CHECK(sums.keys == keys);
  for (const auto& [shape, tiles] : sums.shapes) {
    got_shapes[{shape.queries, shape.keys}] += tiles;
  }
  CHECK(got_shapes == shapes);
  io::DryMachine machine(io::FastMemory{});
  std::int64_t largest = 0;
  by_keys.for_idle(machine, [&](auto&, io::Range range) {
    idle += range.count();
    largest = std::max(largest, range.count());
  });
  CHECK(idle + queries == q);
  CHECK(sums.idle_queries == largest);
  CHECK(machine.traffic() == io::Traffic{});
}

TEST_CASE("tile maps visit the tiles with a visible pair", "[cpu]") {
  for (const std::string text :
       {"sq=9,sk=7", "sq=1,sk=1", "sq=7,sk=7,mask=causal_tl", "sq=5,sk=11,mask=causal_br",
        "sq=11,sk=5,mask=causal_br", "sq=11,sk=5,mask=causal_tl", "sq=12,sk=12,mask=window_2_1",
        "sq=12,sk=5,mask=window_tl_1_0", "sq=3,sk=12,mask=window_tl_0_inf",
        "b=3,sq=6,sk=9,mask=lengths_9_0_4", "b=2,sq=6,sk=9,mask=causal_br+lengths_3_8",
        "mask=cu_3x5_7x2+causal_br", "sq=10,sk=9,mask=random_15_3", "sq=6,sk=9,mask=random_0_1",
        "sq=9,sk=13,mask=causal_br+random_40_5", "b=2,sq=8,sk=8,mask=random_50_2+lengths_3_8"}) {
    const Problem problem = Problem::parse(text + ",d=1");
    for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
      for (const std::int64_t bq : {1, 2, 3, 5, 20}) {
        for (const std::int64_t bk : {1, 2, 4, 7, 20}) {
          INFO(text << " batch " << batch << " tiles " << bq << " x " << bk);
          check(problem, batch, bq, bk);
        }
      }
    }
  }
}

}  // namespace
}  // namespace attest::schedules
