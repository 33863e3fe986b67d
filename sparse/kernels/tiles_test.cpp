#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"
#include "sparse/kernels/block_tiles.hpp"
#include "sparse/kernels/kernel.hpp"
#include "sparse/kernels/lists/pair_lists.hpp"
#include "sparse/kernels/row_tasks.hpp"
#include "sparse/kernels/tasks.hpp"

namespace attest::sparse {
namespace {

using Pairs = std::map<std::pair<std::int64_t, std::int64_t>, int>;

// How often the walks over queries and over keys come to each pair.
struct Visits {
  Pairs by_query, by_key;
};

Visits visits_of_blocks(const attest_problem& problem, const cpu::Batch& batch) {
  const BlockTiles tiles(problem);
  Visits visits;
  const auto count = [](Pairs& pairs, Rows queries, Rows keys) {
    for (std::int64_t i = queries.first; i < queries.first + queries.count; ++i) {
      for (std::int64_t j = keys.first; j < keys.first + keys.count; ++j) ++pairs[{i, j}];
    }
  };
  for (std::int64_t t = 0; t < tiles.queries().tiles(batch.q_length); ++t) {
    const Rows queries = tiles.queries().tile(t, batch.q_length);
    CHECK(queries.count <= kTile);
    tiles.for_keys(batch, t, [&](Rows keys) { count(visits.by_query, queries, keys); });
  }
  for (std::int64_t t = 0; t < tiles.keys().tiles(batch.k_length); ++t) {
    const Rows keys = tiles.keys().tile(t, batch.keys);
    tiles.for_queries(batch, t, [&](Rows queries) { count(visits.by_key, queries, keys); });
  }
  return visits;
}

Visits visits_of_pairs(const attest_problem& problem, const cpu::Batch& batch) {
  Visits visits;
  for (std::int64_t i = 0; i < batch.q_length; ++i) {
    const RowList keys = keys_of(problem, batch, i);
    for (std::int64_t n = 0; n < keys.count; ++n) ++visits.by_query[{i, keys[n]}];
  }
  for (std::int64_t j = 0; j < batch.keys; ++j) {
    const RowList queries = queries_of(problem, batch, j);
    for (std::int64_t n = 0; n < queries.count; ++n) ++visits.by_key[{queries[n], j}];
  }
  return visits;
}

const std::vector<std::string>& masks() {
  static const std::vector<std::string> list{"none",
                                             "causal_br",
                                             "causal_tl",
                                             "window_3_70",
                                             "block_64_40_1",
                                             "block_100x70_50_3",
                                             "block_3x5_30_1",
                                             "block_8_0_1",
                                             "causal_br+block_16x9_50_1",
                                             "window_20_10+blockband_16x9_1"};
  return list;
}

TEST_CASE("every visible pair once", "[sparse]") {
  for (const std::string& mask : masks()) {
    const Problem problem = Problem::parse("sq=150,sk=140,d=2,mask=" + mask);
    INFO(mask);
    const AbiProblem blocks(problem, 1, ATTEST_BLOCK_MASK), csr(problem, 1, ATTEST_CSR_MASK);
    const cpu::Batch batch = cpu::batch_of(*blocks.get(), 0);
    const Visits tiles = visits_of_blocks(*blocks.get(), batch);
    const Visits pairs = visits_of_pairs(*csr.get(), batch);
    CHECK(pairs.by_query == pairs.by_key);
    CHECK(tiles.by_query == tiles.by_key);
    std::int64_t visible = 0;
    for (std::int64_t i = 0; i < 150; ++i) {
      for (std::int64_t j = 0; j < 140; ++j) {
        if (!problem.mask.visible(problem.sequences().front(), i, j)) continue;
        ++visible;
        CHECK(pairs.by_query.count({i, j}) == 1);
        CHECK(tiles.by_query.count({i, j}) == 1);
      }
    }
    CHECK(static_cast<std::int64_t>(pairs.by_query.size()) == visible);
    for (const auto* visits : {&pairs.by_query, &tiles.by_query}) {
      for (const auto& [pair, count] : *visits) CHECK(count == 1);
    }
  }
}

TEST_CASE("tiles beyond the lists are not visited", "[sparse]") {
  const Problem problem = Problem::parse("sq=256,sk=256,d=2,mask=block_64_30_1");
  const AbiProblem form(problem, 1, ATTEST_BLOCK_MASK);
  const Visits visits = visits_of_blocks(*form.get(), cpu::batch_of(*form.get(), 0));
  CHECK(static_cast<std::int64_t>(visits.by_query.size()) == problem.visible_pairs());
  CHECK(problem.visible_pairs() < 256 * 256);
}

TEST_CASE("tasks run once, the longest first", "[sparse]") {
  std::vector<Task> tasks;
  for (std::int64_t part = 0; part < 50; ++part) {
    tasks.push_back({0, 0, part, {0, 0}, part * 7 % 50, false});
  }
  std::vector<std::int64_t> works;
  run_longest_first(tasks, 1, [&](const Task& task, int thread) {
    CHECK(thread == 0);
    works.push_back(task.work);
  });
  REQUIRE(works.size() == tasks.size());
  CHECK(std::is_sorted(works.rbegin(), works.rend()));
  std::vector<std::atomic<int>> runs(tasks.size());
  run_longest_first(tasks, 3,
                    [&](const Task& task, int) { ++runs[static_cast<std::size_t>(task.tile)]; });
  for (const std::atomic<int>& count : runs) CHECK(count == 1);
}

TEST_CASE("rows are cut by their pairs", "[sparse]") {
  // Rows of 1 to 400 pairs in single tiles, and tiles between them that stay whole.
  const auto degree = [](std::int64_t row) { return row % 5 == 0 ? 400 : row % 3; };
  std::vector<Task> tasks;
  for (std::int64_t tile = 0; tile < 9; ++tile) {
    append_tasks({0, 0, tile, {tile * kTile, kTile}, 0, tile % 3 != 1}, 2, degree, tasks);
  }
  std::int64_t next[2] = {0, 0};
  std::set<std::int64_t> counts;
  for (const Task& task : tasks) {
    std::int64_t& row = next[task.head];
    CHECK(task.rows.first == row);
    CHECK(task.tile == row / kTile);
    std::int64_t work = 0, last = 0;
    for (std::int64_t n = 0; n < task.rows.count; ++n) {
      last = 1 + degree(row++);
      work += last;
    }
    CHECK(task.work == work);
    if (task.is_single) {
      CHECK((task.rows.count >= 1 && task.rows.count <= kRowsOfTask));
      CHECK(work - last < kPairsOfTask);
      counts.insert(task.rows.count);
    } else {
      CHECK(task.rows.count == kTile);
    }
  }
  CHECK(next[0] == 9 * kTile);
  CHECK(next[1] == 9 * kTile);
  CHECK(counts.size() > 1);  // by rows and by pairs
}

TEST_CASE("tiles of no schedule: those of the pattern's blocks", "[sparse][kernels]") {
  const auto rows_of = [](std::int64_t block) {
    std::vector<std::int64_t> rows;
    const Cut cut(block, 200);
    for (std::int64_t tile = 0; tile < cut.tiles(200); ++tile) {
      if (cut.tile(tile, 200).count > 0) rows.push_back(cut.tile(tile, 200).count);
    }
    return rows;
  };
  CHECK(rows_of(32) == std::vector<std::int64_t>{32, 32, 32, 32, 32, 32, 8});
  CHECK(rows_of(100) == std::vector<std::int64_t>{64, 36, 64, 36});
  // A schedule's are all as large as the first, but for the last.
  CHECK(block_flash2_kernel().description.schedule == nullptr);
  CHECK(csr_gather_kernel().description.schedule == nullptr);
}

}  // namespace
}  // namespace attest::sparse
