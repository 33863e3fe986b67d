#include "schedules/lists/blocks/held_pairs.hpp"

#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "core/testing/catch.hpp"
#include "io/schedule/best_schedule.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"

namespace attest::schedules {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

std::set<std::int64_t> rows_of(io::Range a, io::Range b) {
  std::set<std::int64_t> rows;
  for (const io::Range& range : {a, b}) {
    for (std::int64_t row = range.begin; row < range.end; ++row) rows.insert(row);
  }
  return rows;
}

// Every pair of a listed tile in one tile of the grid, and first visits that are first.
void check_grid(const CutGrid& grid, io::Range queries, io::Range keys) {
  std::map<Pair, int> times;
  std::set<std::int64_t> queries_met, keys_met;
  for (const CutGrid::Place& place : grid.places(queries, keys)) {
    const CutTile& tile = place.tile;
    const auto all_queries = rows_of(tile.whole_queries, tile.cut_queries);
    const auto all_keys = rows_of(tile.whole_keys, tile.cut_keys);
    REQUIRE(static_cast<std::int64_t>(all_queries.size()) == tile.queries());
    REQUIRE(static_cast<std::int64_t>(all_keys.size()) == tile.keys());
    std::int64_t pairs = 0;
    for (const std::int64_t i : all_queries) {
      for (const std::int64_t j : all_keys) {
        const bool lost = i >= tile.cut_queries.begin && i < tile.cut_queries.end &&
                          j >= tile.cut_keys.begin && j < tile.cut_keys.end;
        if (lost) continue;
        ++times[{i, j}];
        ++pairs;
      }
    }
    CHECK(pairs == tile.pairs());
    for (const std::int64_t i : all_queries) {
      CHECK((queries_met.count(i) == 0) == place.first_of_queries);
    }
    for (const std::int64_t j : all_keys) {
      CHECK((keys_met.count(j) == 0) == place.first_of_keys);
    }
    queries_met.insert(all_queries.begin(), all_queries.end());
    keys_met.insert(all_keys.begin(), all_keys.end());
  }
  CHECK(times.size() == static_cast<std::size_t>(queries.count() * keys.count()));
  for (const auto& [pair, count] : times) CHECK(count == 1);
}

TEST_CASE("a grid of cut tiles has every pair once", "[sparse][schedules]") {
  Rng rng(5);
  for (int round = 0; round < 300; ++round) {
    const std::int64_t i = rng.between(0, 9), j = rng.between(0, 9);
    const CutGrid grid{rng.between(1, 12), rng.between(1, 12), rng.between(1, 40)};
    const io::Range queries{i, i + rng.between(1, 20)}, keys{j, j + rng.between(1, 20)};
    INFO(queries.count() << " x " << keys.count() << " in " << grid.side_q << " x " << grid.side_k
                         << ", " << grid.held << " held");
    check_grid(grid, queries, keys);
  }
}

TEST_CASE("the corner lost is as small as the pairs held allow", "[sparse][schedules]") {
  CHECK(CutGrid{8, 8, 64}.cut() == 0);
  CHECK(CutGrid{8, 8, 63}.cut() == 1);
  CHECK(CutGrid{8, 8, 60}.cut() == 2);
  CHECK(CutGrid{8, 8, 59}.cut() == 3);
  CHECK(CutGrid{8, 8, 1}.cut() == 7);
  CHECK(CutGrid{1, 8, 1}.cut() == 0);
  constexpr auto kLongest = std::numeric_limits<std::int64_t>::max();
  CHECK(CutGrid{kLongest, kLongest, kLongest}.places({3, 9}, {2, 7}).size() == 1);
  CHECK(CutGrid{kLongest, kLongest, 1}.places({3, 9}, {2, 7}).size() == 1);
  // Four tiles of 32 x 32 without 9 x 9 each, and those in the middle.
  const auto places = CutGrid{32, 32, 1024 - 81}.places({0, 64}, {64, 128});
  REQUIRE(places.size() == 5);
  CHECK(places[0].tile.pairs() == 1024 - 81);
  CHECK(places[4].tile.whole_queries == io::Range{23, 41});
  CHECK(places[4].tile.whole_keys == io::Range{64 + 23, 64 + 41});
}

// However large the blocks are, few grids are tried.
TEST_CASE("held pairs of one large block", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=2048,sk=2048,d=16,mask=blockband_2048_0");
  const AbiProblem form(problem, 1);
  const auto schedule = testing::sparse_schedules().make("block_held_pairs", *form.get(),
                                                         io::FastMemory::of_words(40000));
  CHECK(schedule->closed_form().peak.words <= 40000);
  CHECK(schedule->spec().to_string() ==
        "block_held_pairs:bq=2048,bk=2048,iq=187,ik=187,held=34969");
}

// A block by itself in as much fast memory as it has pairs: a corner is cut, and nothing else
// moves as few words.
TEST_CASE("held pairs are the best on diagonal blocks", "[sparse][schedules]") {
  const Problem problem = Problem::parse("sq=256,sk=256,d=64,mask=blockband_64_0");
  const AbiProblem form(problem, 1);
  const auto words = [&](const char* text, std::int64_t fast_words) {
    const auto schedule =
        testing::sparse_schedules().make(text, *form.get(), io::FastMemory::of_words(fast_words));
    INFO(schedule->spec().to_string());
    return schedule->closed_form().total_words();
  };
  CHECK(testing::sparse_schedules()
            .make("block_held_pairs", *form.get(), io::FastMemory::of_words(4096))
            ->spec()
            .to_string() == "block_held_pairs:bq=64,bk=64,iq=64,ik=64,held=3952");
  // Without corners cut: three tiles a side, and two.
  CHECK(words("block_held_pairs", 1024) <
        words("block_held_pairs:bq=64,bk=64,iq=22,ik=22,held=484", 1024));
  CHECK(words("block_held_pairs", 4096) <
        words("block_held_pairs:bq=64,bk=64,iq=32,ik=64,held=2048", 4096));
  for (const std::int64_t fast_words : {1024, 4096}) {
    const io::Words held = words("block_held_pairs", fast_words);
    for (const auto& family : testing::sparse_schedules().families()) {
      if (family->direction() != Direction::backward || family->name() == "block_held_pairs" ||
          family->name() == "nm_two_pass") {  // not for blocks
        continue;
      }
      CHECK(held < words(family->name().c_str(), fast_words));
    }
  }
}

}  // namespace
}  // namespace attest::schedules
