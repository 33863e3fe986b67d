#include "sparse/kernels/lists/split_mask.hpp"

#include <cmath>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest::sparse {
namespace {

using Pair = std::pair<std::int64_t, std::int64_t>;

// The pairs that are single, and those that hide() leaves of the tiles, each once.
struct Found {
  std::set<Pair> single, tiled;
};

Found found_by_query(const SplitMask& mask, const cpu::Batch& batch) {
  Found found;
  for (std::int64_t i = 0; i < batch.q_length; ++i) {
    const RowList keys = mask.single_keys(batch, i);
    for (std::int64_t n = 0; n < keys.count; ++n) CHECK(found.single.insert({i, keys[n]}).second);
  }
  for (std::int64_t t = 0; t < mask.tiles().queries().tiles(batch.q_length); ++t) {
    const Rows queries = mask.tiles().queries().tile(t, batch.q_length);
    mask.tiles().for_keys(batch, t, [&](Rows keys) {
      std::vector<float> S(static_cast<std::size_t>(queries.count * keys.count), 0.0f);
      mask.hide(queries, keys, queries.count, S.data());
      for (std::int64_t e = 0; e < queries.count * keys.count; ++e) {
        const Pair pair{queries.first + e % queries.count, keys.first + e / queries.count};
        if (!std::isinf(S[static_cast<std::size_t>(e)])) CHECK(found.tiled.insert(pair).second);
      }
    });
  }
  return found;
}

std::set<Pair> singles_by_key(const SplitMask& mask, const cpu::Batch& batch) {
  std::set<Pair> pairs;
  for (std::int64_t j = 0; j < batch.keys; ++j) {
    const RowList queries = mask.single_queries(batch, j);
    for (std::int64_t n = 0; n < queries.count; ++n) CHECK(pairs.insert({queries[n], j}).second);
  }
  return pairs;
}

// Returns a problem of 150 queries and 140 keys, ragged in both.
Problem masked(const std::string& mask) { return Problem::parse("sq=150,sk=140,d=2,mask=" + mask); }

Found found_of(const Problem& problem) {
  const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
  const cpu::Batch batch = cpu::batch_of(*form.get(), 0);
  const SplitMask mask(*form.get(), true);
  Found found = found_by_query(mask, batch);
  CHECK(found.single == singles_by_key(mask, batch));
  return found;
}

TEST_CASE("every pair in a tile or single", "[sparse]") {
  for (const std::string text :
       {"pairs_60_1", "pairs_24_1", "pairs_5_1", "block_64_40_1", "block_16_30_1",
        "block_100x70_50_3", "global_4_9_2", "rows_30_1", "columns_30_1", "nm_2_4_1",
        "dilated_inf_inf_8", "block_8_0_1", "documents_8x8_0x8_142x124"}) {
    const Problem problem = masked(text);
    INFO(text);
    const Found found = found_of(problem);
    std::set<Pair> all = found.tiled;
    for (const Pair& pair : found.single) CHECK(all.insert(pair).second);
    std::set<Pair> visible;
    for (std::int64_t i = 0; i < 150; ++i) {
      for (std::int64_t j = 0; j < 140; ++j) {
        if (problem.mask.visible(problem.sequences().front(), i, j)) visible.insert({i, j});
      }
    }
    CHECK(all == visible);
  }
}

TEST_CASE("dense tiles are computed whole, others pair by pair", "[sparse]") {
  CHECK(found_of(masked("pairs_60_1")).single.empty());
  CHECK(found_of(masked("block_64_40_1")).single.empty());
  CHECK(found_of(masked("pairs_5_1")).tiled.empty());
  CHECK(found_of(masked("dilated_inf_inf_8")).tiled.empty());
  // Just as many full rows of 64 as are enough, and one fewer.
  const auto rows = [](int count) {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::int32_t> indices;
    for (int i = 0; i < 64; ++i) {
      for (std::int32_t j = 0; i < count && j < 64; ++j) indices.push_back(j);
      offsets.push_back(static_cast<std::int64_t>(indices.size()));
    }
    attest_csr_mask mask{};
    mask.by_query = {offsets.data(), indices.data()};
    attest_problem problem{};
    problem.batch = 1, problem.seqlen_q = 64, problem.seqlen_k = 64;
    problem.mask.window_left = problem.mask.window_right = -1;
    problem.mask.csr = &mask;
    return split_pairs(problem, kTile).tiles.indices.size();
  };
  const int enough = static_cast<int>(blocks_of(64, kPairsPerVisible));
  CHECK(rows(enough) == 1);
  CHECK(rows(enough - 1) == 0);
}

TEST_CASE("tiles as large as the blocks", "[sparse]") {
  const auto tile_of = [](const std::string& mask) {
    const Problem problem = Problem::parse("sq=512,sk=512,d=2,mask=" + mask);
    const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
    const PairSplit split = split_pairs(*form.get(), best_tile(*form.get()));
    // No pair of these is single, and none of a tile is absent.
    CHECK(split.singles.indices.empty());
    CHECK(std::ssize(split.tiles.indices) * split.tile * split.tile == problem.visible_pairs());
    CHECK(split.words.empty());
    return split.tile;
  };
  CHECK(tile_of("block_128_40_1") == 64);
  CHECK(tile_of("block_64_20_1") == 64);
  CHECK(tile_of("block_32_20_1") == 32);
  CHECK(tile_of("block_16_20_1") == 16);
}

TEST_CASE("only tiles with absent pairs have words", "[sparse]") {
  const auto split_of = [](const std::string& mask) {
    const Problem problem = masked(mask);  // of which the last tiles are ragged
    const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
    return split_pairs(*form.get(), kTile);
  };
  const PairSplit whole = split_of("block_64_40_1"), cut = split_of("pairs_60_1");
  CHECK(whole.words.empty());
  CHECK(whole.words_at.size() == whole.tiles.indices.size());
  CHECK(cut.words.size() == kTile * cut.tiles.indices.size());
}

TEST_CASE("threads split the pairs as one does", "[sparse]") {
  const Problem problem = Problem::parse("sq=150,sk=140,d=2,mask=block_16x9_30_1");
  const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
  attest_problem on_threads = *form.get();
  const PairSplit one = split_pairs(on_threads, 16);
  CHECK_FALSE(one.tiles.indices.empty());
  CHECK_FALSE(one.singles.indices.empty());
  for (const std::int32_t threads : {2, 3, 7, 40}) {
    on_threads.num_threads = threads;
    const PairSplit other = split_pairs(on_threads, 16);
    CHECK(other.tiles.offsets == one.tiles.offsets);
    CHECK(other.tiles.indices == one.tiles.indices);
    CHECK(other.words == one.words);
    CHECK(other.words_at == one.words_at);
    CHECK(other.singles.offsets == one.singles.offsets);
    CHECK(other.singles.indices == one.singles.indices);
  }
}

TEST_CASE("pairs beyond a band are of no tile and not single", "[sparse]") {
  const Problem problem = masked("window_3_3+pairs_60_1");
  const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
  const PairSplit split = split_pairs(*form.get(), 16);
  CHECK(split.tiles.indices.size() <= 2 * 10);  // that the band meets
  CHECK_FALSE(split.tiles.indices.empty());
  CHECK(static_cast<std::int64_t>(split.singles.indices.size()) < problem.visible_pairs());
  // Lengths may move the band from one batch entry to the next.
  const AbiProblem moved(masked("lengths_140+causal_br+pairs_60_1"), 1, ATTEST_CSR_MASK);
  CHECK(split_pairs(*moved.get(), 16).tiles.indices.size() == 10 * 9);
}

TEST_CASE("without a CSR mask every tile is whole", "[sparse]") {
  for (const std::string text : {"none", "causal_br", "block_16_40_1"}) {
    const Problem problem = masked(text);
    const AbiProblem form(problem, 1, ATTEST_BLOCK_MASK);
    const SplitMask mask(*form.get(), true);
    INFO(text);
    CHECK_FALSE(mask.has_singles());
    CHECK(static_cast<std::int64_t>(
              found_by_query(mask, cpu::batch_of(*form.get(), 0)).tiled.size()) >=
          problem.visible_pairs());
    for (const Task& task : mask.query_tasks()) CHECK_FALSE(task.is_single);
  }
}

TEST_CASE("tasks cover all rows of every head", "[sparse]") {
  for (const std::string text : {"pairs_60_1", "pairs_5_1", "block_16_30_1", "global_20_30_0"}) {
    const Problem problem =
        Problem::parse("b=2,hq=4,hkv=2,sq=150,sk=140,d=2,mask=lengths_140_30+" + text);
    const AbiProblem form(problem, 1, ATTEST_CSR_MASK);
    const SplitMask mask(*form.get(), true);
    INFO(text);
    const auto rows_of = [](const std::vector<Task>& tasks) {
      std::set<std::vector<std::int64_t>> rows;
      for (const Task& task : tasks) {
        for (std::int64_t row = task.rows.first; row < task.rows.first + task.rows.count; ++row) {
          CHECK(rows.insert({task.batch, task.head, row}).second);
        }
      }
      return rows.size();
    };
    CHECK(rows_of(mask.query_tasks()) == 2 * 4 * 150);
    CHECK(rows_of(mask.key_tasks()) == 2 * 2 * 140);
  }
}

TEST_CASE("lists in the other direction", "[sparse]") {
  OwnedLists lists;
  lists.indices = {1, 3};
  lists.end_list();
  lists.end_list();
  lists.indices.insert(lists.indices.end(), {0, 1});
  lists.end_list();
  const OwnedLists other = transposed(lists, 5);
  CHECK(other.offsets == std::vector<std::int64_t>{0, 1, 3, 3, 4, 4});
  CHECK(other.indices == std::vector<std::int32_t>{2, 0, 2, 0});
}

}  // namespace
}  // namespace attest::sparse
