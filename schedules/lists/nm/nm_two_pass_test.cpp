#include "schedules/lists/nm/nm_two_pass.hpp"

#include <string>

#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "schedules/dense/two_pass.hpp"
#include "schedules/engine/family.hpp"

namespace attest::schedules {
namespace {

constexpr std::int64_t kQueries = 40, kKeys = 48, kDk = 3, kDv = 2;

Problem nm_problem(const std::string& mask) {
  return Problem::parse("sq=40,sk=48,d=3,dv=2,mask=" + mask);
}

// Pairs of a block of queries and a key that one of them sees, pair by pair; or the reverse.
struct Meetings {
  std::int64_t keys = 0, queries = 0;
};
Meetings meetings(const Problem& problem, std::int64_t block_q, std::int64_t block_k) {
  const Sequence sequence = problem.sequences().front();
  Meetings sum;
  for (std::int64_t j = 0; j < kKeys; ++j) {
    for (std::int64_t begin = 0; begin < kQueries; begin += block_q) {
      bool seen = false;
      for (std::int64_t i = begin; i < std::min(begin + block_q, kQueries); ++i) {
        seen = seen || problem.mask.visible(sequence, i, j);
      }
      if (seen) ++sum.keys;
    }
  }
  for (std::int64_t i = 0; i < kQueries; ++i) {
    for (std::int64_t begin = 0; begin < kKeys; begin += block_k) {
      bool seen = false;
      for (std::int64_t j = begin; j < std::min(begin + block_k, kKeys); ++j) {
        seen = seen || problem.mask.visible(sequence, i, j);
      }
      if (seen) ++sum.queries;
    }
  }
  return sum;
}

// Metadata by hand: 2 of 4 are 4 bits a query and group, 5 of 16 are 20; twelve groups, or three.
// In the second pass a block of 6 keys meets two groups, a block of 5 two or three; every one reads
// those of all queries.
TEST_CASE("words of gradients over N:M metadata", "[sparse][schedules]") {
  struct Case {
    const char* mask;
    std::int64_t block_q, block_k, first, second;
  };
  for (const Case& one :
       {Case{"nm_2_4_7", 8, 4, 5 * 12 * 1, 12 * 1 * 5}, Case{"nm_2_4_7", 8, 6, 5 * 12, 8 * 2 * 5},
        Case{"nm_2_4_7", 9, 48, 4 * 12 * 2 + 12 * 1, 12 * (4 * 2 + 1)},
        Case{"nm_5_16_7", 8, 16, 5 * 3 * 5, 3 * 5 * 5},
        Case{"nm_5_16_7", 8, 8, 5 * 3 * 5, 6 * 5 * 5}, Case{"nm_2_4_7", 1, 1, 40 * 12, 48 * 40}}) {
    INFO(one.mask << " in blocks of " << one.block_q << " and " << one.block_k);
    const Problem problem = nm_problem(one.mask);
    const AbiProblem form(problem, 1);
    NmTwoPass passes{one.block_q, one.block_k};
    passes.prepare(*form.get());
    const Meetings met = meetings(problem, one.block_q, one.block_k);
    const io::Traffic words = heads_cost(passes, *form.get());
    CHECK(words == BoundSchedule<NmTwoPass>(passes, *form.get()).dry_count({}).traffic());
    CHECK(words.reads.words == kQueries * (kDk + 2 * kDv + 1) + met.keys * (kDk + kDv) + one.first +
                                   kKeys * (kDk + kDv) + met.queries * (kDk + kDv + 2) +
                                   one.second);
    CHECK(words.writes.words == kQueries * (kDk + 1) + kKeys * (kDk + kDv));
  }
}

// two_pass_row visits the same rows where blocks meet all of them, and reads no metadata.
TEST_CASE("metadata of gradients that is not read is noticed", "[sparse][schedules]") {
  const Problem problem = nm_problem("nm_2_4_7");
  const AbiProblem form(problem, 1);
  NmTwoPass passes{40, 48};
  passes.prepare(*form.get());
  const TwoPassRow silent{40, 48};
  const io::Traffic counted =
      BoundSchedule<TwoPassRow>(silent, *form.get()).dry_count({}).traffic();
  const io::Traffic words = heads_cost(passes, *form.get());
  constexpr std::int64_t kMetadata = 12 * (40 * 4 / 32);
  CHECK(counted.reads.words + 2 * kMetadata == words.reads.words);
  CHECK(counted.writes == words.writes);
}

// Without a pattern, where tiles are chosen by it, the closed form counts blocks that are alike
// together: as many as there are, and of the same groups as each by itself.
TEST_CASE("blocks that are alike are counted together", "[sparse][schedules]") {
  Rng rng(14);
  for (int round = 0; round < 200; ++round) {
    const std::int64_t k = rng.between(0, 60), block = rng.between(1, 20);
    const NmShape shape{1, rng.between(2, 9)};
    const Problem problem = Problem::parse("sq=7,sk=" + std::to_string(k) + ",d=1");
    const AbiProblem form(problem, 1);
    const ScoreRule rule{form.get(), batch_of(*form.get(), 0), 0};
    const NmLayout metadata(rule, 7, k, shape, 3);
    INFO(k << " keys in blocks of " << block << ", groups of " << shape.group);
    io::Words keys, groups, each_keys, each_groups;
    for (const auto& [range, times] : metadata.key_blocks(block)) {
      keys += times * range.count();
      groups += times * metadata.groups_of(range).count();
    }
    for (const io::Range& range : io::single_blocks(k, block)) {
      each_keys += range.count();
      each_groups += metadata.groups_of(range).count();
    }
    CHECK(keys == each_keys);
    CHECK(groups == each_groups);
    CHECK(metadata.key_blocks(block).size() <= static_cast<std::size_t>(shape.group) + 1);
  }
}

// A block of a whole group meets every query: no pattern of this kind saves words there.
TEST_CASE("keys of a whole group meet every query", "[sparse][schedules]") {
  CHECK(meetings(nm_problem("nm_1_8_3"), 1, 8).queries == kQueries * kKeys / 8);
  CHECK(meetings(nm_problem("nm_1_8_3"), 1, 1).queries == kQueries * kKeys / 8);
}

}  // namespace
}  // namespace attest::schedules
