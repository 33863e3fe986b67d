// Bands against every pair.
#include "schedules/walks/band.hpp"

#include <algorithm>
#include <string>

#include "core/problem.hpp"
#include "core/testing/catch.hpp"

namespace attest::schedules {
namespace {

// Pairs that the bands of one batch entry hold, one by one.
class Pairs {
 public:
  Pairs(const Problem& problem, std::int64_t batch)
      : problem_(problem), sequence_(problem.sequences()[static_cast<std::size_t>(batch)]) {}

  std::int64_t q() const { return sequence_.q_length; }
  std::int64_t k() const { return sequence_.k_length; }
  bool visible(std::int64_t i, std::int64_t j) const {
    return problem_.mask.visible(sequence_, i, j);
  }
  std::int64_t count(io::Range queries, io::Range keys) const {
    std::int64_t pairs = 0;
    for (std::int64_t i = queries.begin; i < queries.end; ++i) {
      for (std::int64_t j = keys.begin; j < keys.end; ++j) pairs += visible(i, j) ? 1 : 0;
    }
    return pairs;
  }

 private:
  const Problem& problem_;
  Sequence sequence_;
};

// Checks the `steps` of keys (or queries), with `alone` the pairs of each with the block: the steps
// hold all that have pairs, in order, and within one range all have as many.
template <class Alone>
void check_steps(const std::vector<io::Range>& steps, std::int64_t extent, const Alone& alone) {
  std::int64_t next = steps.empty() ? 0 : steps.front().begin;
  for (std::int64_t n = 0; n < next; ++n) CHECK(alone(n) == 0);
  for (const io::Range& range : steps) {
    REQUIRE(range.begin == next);
    REQUIRE(range.count() > 0);
    for (std::int64_t n = range.begin; n < range.end; ++n) {
      CHECK(alone(n) > 0);
      CHECK(alone(n) == alone(range.begin));
    }
    next = range.end;
  }
  for (std::int64_t n = next; n < extent; ++n) CHECK(alone(n) == 0);
}

void check_queries(const ScoreRule& rule, const Pairs& pairs, io::Range queries) {
  const io::Range all_keys{0, pairs.k()};
  const auto alone = [&](std::int64_t j) { return pairs.count(queries, {j, j + 1}); };
  check_steps(key_steps(rule, queries), pairs.k(), alone);
  std::int64_t most = 0;
  for (std::int64_t j = 0; j < pairs.k(); ++j) most = std::max(most, alone(j));
  CHECK(most_queries(rule, queries) == most);
  CHECK(band_pairs(rule, queries) == pairs.count(queries, all_keys));
}

void check_keys(const ScoreRule& rule, const Pairs& pairs, io::Range keys) {
  const io::Range all_queries{0, pairs.q()};
  const auto alone = [&](std::int64_t i) { return pairs.count({i, i + 1}, keys); };
  check_steps(query_steps(rule, all_queries, keys), pairs.q(), alone);
  std::int64_t most = 0;
  for (std::int64_t i = 0; i < pairs.q(); ++i) {
    most = std::max(most, alone(i));
    const io::Range seen = keys_within(rule, i, keys);
    CHECK(seen.count() == alone(i));
    CHECK(pairs.count({i, i + 1}, seen) == seen.count());
  }
  CHECK(most_keys(rule, all_queries, keys) == most);
}

// Pieces one after another, each of as many as hold no more than so many pairs.
template <class PairsOf>
void check_pieces(const std::vector<Pieces>& pieces, io::Range extent, std::int64_t most,
                  const PairsOf& pairs_of) {
  std::int64_t next = extent.begin;
  for (const Pieces& run : pieces) {
    REQUIRE(run.range.begin == next);
    REQUIRE(run.length > 0);
    REQUIRE(run.range.count() % run.length == 0);
    for (; next < run.range.end; next += run.length) {
      const std::int64_t end = next + run.length;
      CHECK((pairs_of(io::Range{next, end}) <= most || run.length == 1));
      if (end < extent.end) CHECK(pairs_of(io::Range{next, end + 1}) > most);
      if (run.range.count() > run.length) {
        CHECK(pairs_of(io::Range{next, end}) == pairs_of(io::Range{next, next + 1}) * run.length);
      }
    }
  }
  CHECK(next == extent.end);
}

// Queries whose bands begin before a key and end by it come first.
void check_order(const ScoreRule& rule, const Pairs& pairs, io::Range queries) {
  const io::Range seeing = queries_of(rule, queries, keys_of(rule, queries));
  for (std::int64_t j = 0; j <= pairs.k(); ++j) {
    const std::int64_t begun = begun_before(rule, seeing, j), ended = ended_by(rule, seeing, j);
    for (std::int64_t i = seeing.begin; i < seeing.end; ++i) {
      CHECK((i < seeing.begin + begun) == (pairs.count({i, i + 1}, {0, j}) > 0));
      CHECK((i < seeing.begin + ended) == (pairs.count({i, i + 1}, {j, pairs.k()}) == 0));
    }
  }
}

TEST_CASE("pieces of the keys of queries, and of the queries of keys", "[cpu]") {
  int runs = 0;
  for (const std::string text :
       {"sq=9,sk=17", "sq=17,sk=9", "sq=7,sk=7,mask=causal_tl", "sq=12,sk=40,mask=causal_br",
        "sq=40,sk=12,mask=causal_br", "sq=20,sk=20,mask=window_2_1", "sq=20,sk=20,mask=window_0_0",
        "sq=12,sk=40,mask=window_20_12", "sq=40,sk=12,mask=window_tl_20_9",
        "sq=9,sk=9,mask=window_4611686018427387904_1", "sq=6,sk=9,mask=lengths_4",
        "sq=9,sk=7,mask=lengths_3+window_tl_2_inf"}) {
    const Problem problem = Problem::parse(text + ",d=1");
    const AbiProblem form(problem, 1);
    const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
    const Pairs pairs(problem, 0);
    for (const std::int64_t block : {1, 2, 3, 5, 20}) {
      for (const std::int64_t most : {1, 4, 9, 30, 1000}) {
        INFO(text << " blocks of " << block << " in pieces of " << most);
        for (const io::Range& queries : io::single_blocks(pairs.q(), block)) {
          check_order(rule, pairs, queries);
          const io::Range seeing = queries_of(rule, queries, keys_of(rule, queries));
          const auto pieces = key_pieces(rule, seeing, most);
          for (const Pieces& run : pieces) runs += run.range.count() > run.length ? 1 : 0;
          check_pieces(pieces, keys_of(rule, seeing), most, [&](io::Range keys) {
            CHECK(band_pairs(rule, queries, keys) == pairs.count(queries, keys));
            return pairs.count(queries, keys);
          });
        }
        for (const io::Range& all : io::single_blocks(pairs.k(), block)) {
          const io::Range keys = overlap(keys_of(rule, {0, pairs.q()}), all);
          const auto pieces = query_pieces(rule, {0, pairs.q()}, keys, most);
          for (const Pieces& run : pieces) runs += run.range.count() > run.length ? 1 : 0;
          check_pieces(pieces, queries_of(rule, {0, pairs.q()}, keys), most,
                       [&](io::Range queries) { return pairs.count(queries, keys); });
        }
      }
    }
  }
  CHECK(runs > 0);
}

TEST_CASE("blocks inside a window are alike", "[cpu]") {
  const Problem problem = Problem::parse("sq=40,sk=37,d=1,mask=window_3_5");
  const AbiProblem form(problem, 1);
  const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
  const io::Range queries{0, 40};
  const auto lengths = [](const std::vector<Pieces>& pieces) {
    std::vector<std::int64_t> list;
    for (const Pieces& run : pieces) list.push_back(run.range.count());
    return list;
  };
  std::vector<std::vector<std::int64_t>> of_queries, of_keys;
  for (const io::Range& block : io::single_blocks(40, 4)) {
    if (inner_queries(rule, block)) of_queries.push_back(lengths(key_pieces(rule, block, 13)));
  }
  for (const io::Range& block : io::single_blocks(37, 4)) {
    if (inner_keys(rule, queries, block)) {
      of_keys.push_back(lengths(query_pieces(rule, queries, block, 13)));
    }
  }
  REQUIRE(of_queries.size() > 4);
  REQUIRE(of_keys.size() > 4);
  for (const auto& list : of_queries) CHECK(list == of_queries.front());
  for (const auto& list : of_keys) CHECK(list == of_keys.front());
}

TEST_CASE("bands hold the visible pairs", "[cpu]") {
  for (const std::string text :
       {"sq=9,sk=7", "sq=1,sk=1", "sq=7,sk=7,mask=causal_tl", "sq=5,sk=11,mask=causal_br",
        "sq=11,sk=5,mask=causal_br", "sq=11,sk=5,mask=causal_tl", "sq=12,sk=12,mask=window_2_1",
        "sq=12,sk=12,mask=window_0_0", "sq=12,sk=5,mask=window_tl_1_0",
        "sq=3,sk=12,mask=window_tl_0_inf", "sq=12,sk=12,mask=window_inf_2",
        "sq=9,sk=9,mask=window_4611686018427387904_1", "b=3,sq=6,sk=9,mask=lengths_9_0_4",
        "b=2,sq=6,sk=9,mask=causal_br+lengths_3_8", "sq=6,sk=5,mask=lengths_2+window_tl_0_0",
        "sq=9,sk=7,mask=lengths_3+window_tl_2_inf", "mask=cu_3x5_7x2_0x3_2x0+causal_br"}) {
    const Problem problem = Problem::parse(text + ",d=1");
    const AbiProblem form(problem, 1);
    for (std::int64_t batch = 0; batch < problem.batch; ++batch) {
      const ScoreRule rule{form.get(), batch_of(*form.get(), batch), 0};
      const Pairs pairs(problem, batch);
      for (const std::int64_t block : {1, 2, 3, 5, 20}) {
        INFO(text << " batch " << batch << " blocks of " << block);
        for (const io::Range& queries : io::single_blocks(pairs.q(), block)) {
          check_queries(rule, pairs, queries);
        }
        for (const io::Range& keys : io::single_blocks(pairs.k(), block)) {
          check_keys(rule, pairs, keys);
        }
      }
    }
  }
}

TEST_CASE("blocks that are counted once are alike", "[cpu]") {
  for (const std::string text : {"sq=9,sk=7", "sq=12,sk=12,mask=window_2_1", "sq=6,sk=6"}) {
    const Problem problem = Problem::parse(text + ",d=1");
    const AbiProblem form(problem, 1);
    const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
    for (const std::int64_t block : {1, 2, 3, 5, 6, 20}) {
      io::Words queries = 0, pairs = 0;
      for_blocks(rule, problem.seqlen_q, block, [&](io::Range range, io::Words count) {
        CHECK(range.count() <= block);
        queries += count * range.count();
        pairs += count * band_pairs(rule, range);
      });
      CHECK(queries == problem.seqlen_q);
      CHECK(pairs == band_pairs(rule, {0, problem.seqlen_q}));
    }
  }
}

}  // namespace
}  // namespace attest::schedules
