#include "schedules/walks/lists/tile_list.hpp"

#include <set>
#include <tuple>

#include "core/testing/catch.hpp"
#include "io/machine/dry_machine.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"

namespace attest::schedules {
namespace {

using Tile = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;

Tile tile_of(const TileList::Entry& entry) {
  return {entry.queries.begin, entry.queries.end, entry.keys.begin, entry.keys.end};
}

// Tiles in the order they are met, and the words paid for them.
struct Walked {
  std::vector<TileList::Entry> entries;
  std::vector<std::int64_t> blocks;  // of each entry
  io::Traffic traffic;
};

enum class Bits { read, left };

Walked walk(const TileList& list, Bits bits) {
  io::DryMachine machine(io::FastMemory{});
  Walked result;
  for (const io::Range& block : list.blocks()) {
    const ListedTiles tiles(machine, list, block);
    const auto note = [&](const TileList::Entry& entry) {
      result.entries.push_back(entry);
      result.blocks.push_back(block.begin);
    };
    if (bits == Bits::read) {
      tiles.for_each(note);
    } else {
      tiles.for_each_index(note);
    }
    CHECK(tiles.empty() == (result.blocks.empty() || result.blocks.back() != block.begin));
  }
  result.traffic = machine.traffic();
  return result;
}

void check(const Problem& problem, std::int64_t block_q, std::int64_t block_k) {
  INFO(problem.to_string() << " in tiles " << block_q << " x " << block_k);
  const Sequence sequence = problem.sequences().front();
  const AbiProblem form(problem, 1);
  const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
  const auto expected = testing::list_words(problem, sequence, block_q, block_k);
  const std::int64_t q = sequence.q_length, k = sequence.k_length;
  const TileList by_query(rule, q, k, block_q, block_k, Stay::queries);
  const TileList by_key(rule, q, k, block_q, block_k, Stay::keys);
  const Walked rows = walk(by_query, Bits::read), columns = walk(by_key, Bits::read);
  CHECK(rows.traffic.reads.words == 2 * expected.query_blocks + expected.tiles + expected.bits);
  CHECK(columns.traffic.reads.words == 2 * expected.key_blocks + expected.tiles + expected.bits);
  CHECK(rows.traffic.reads.words == by_query.sums().words());
  CHECK(columns.traffic.reads.words == by_key.sums().words());
  CHECK(walk(by_query, Bits::left).traffic.reads.words == by_query.sums().index_words);
  std::set<Tile> of_rows, of_columns;
  std::set<std::int64_t> met;
  for (std::size_t n = 0; n < rows.entries.size(); ++n) {
    CHECK(rows.entries[n].queries.begin == rows.blocks[n]);
    of_rows.insert(tile_of(rows.entries[n]));
  }
  for (std::size_t n = 0; n < columns.entries.size(); ++n) {
    CHECK(columns.entries[n].keys.begin == columns.blocks[n]);
    of_columns.insert(tile_of(columns.entries[n]));
    const bool first = met.insert(columns.entries[n].queries.begin).second;
    CHECK(first == (columns.entries[n].visit == Visit::first));
  }
  CHECK(of_rows == of_columns);
  CHECK(of_rows.size() == static_cast<std::size_t>(expected.tiles));
  io::DryMachine machine(io::FastMemory{});
  std::int64_t idle = 0;
  by_key.for_idle(machine, [&](auto&, io::Range queries) {
    CHECK(met.count(queries.begin) == 0);
    ++idle;
  });
  CHECK(idle == expected.idle_query_blocks);
  CHECK(machine.traffic().reads.words == 1 + idle);
}

TEST_CASE("lists hold the tiles with a visible pair and cost their words", "[sparse][schedules]") {
  Rng rng(3);
  for (int round = 0; round < 300; ++round) {
    const Problem problem = testing::random_pattern_problem(rng, Direction::forward);
    check(problem, rng.between(1, 12), rng.between(1, 12));
  }
}

// Words of lists written out by hand.
TEST_CASE("index words of small patterns", "[sparse][schedules]") {
  const auto words = [](const char* mask, std::int64_t block_q, std::int64_t block_k) {
    const Problem problem = Problem::parse(std::string("sq=12,sk=12,d=1,mask=") + mask);
    const AbiProblem form(problem, 1);
    const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
    return TileList(rule, 12, 12, block_q, block_k, Stay::queries).sums().words();
  };
  CHECK(words("block_4_100_1", 4, 4) == 3 * 2 + 9);            // all tiles, whole
  CHECK(words("block_4_0_1", 4, 4) == 3 * 2);                  // none: offsets alone
  CHECK(words("blockband_4_0", 4, 4) == 3 * 2 + 3);            // the diagonal
  CHECK(words("blockband_4_0", 2, 2) == 6 * 2 + 12);           // divided
  CHECK(words("blockband_4_0", 12, 12) == 1 * 2 + 1 + 5);      // 144 pairs as bits
  CHECK(words("blockband_4_0", 3, 4) == 4 * 2 + 6 + 4);        // rows 3-5, 6-8 meet two blocks
  CHECK(words("blockband_4_0+causal_tl", 4, 4) == 3 * 2 + 6);  // 16 pairs as bits, each
  CHECK(words("blockband_4_0", 1, 1) == 12 * 2 + 48);          // CSR
}

}  // namespace
}  // namespace attest::schedules
