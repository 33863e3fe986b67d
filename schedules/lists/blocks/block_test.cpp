// Every schedule of this room on random patterns: its words against its closed form, its outputs
// against the definition; and schedules over lists of tiles against the dense ones that skip tiles
// for free: the same words, and the words of the lists.
#include <cstdio>
#include <string>

#include "core/testing/catch.hpp"
#include "cpu/testing/judged_call.hpp"
#include "schedules/dense/flash1.hpp"
#include "schedules/dense/flash2.hpp"
#include "schedules/dense/square_tiled.hpp"
#include "schedules/dense/stored_scores.hpp"
#include "schedules/engine/family.hpp"
#include "schedules/lists/blocks/compact_scores.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using attest::testing::Call;
using attest::testing::Dlse;
using attest::testing::Memory;
using testing::sparse_schedules;

constexpr int kCases = 150;  // for each schedule

TEST_CASE("closed forms of sparse forward schedules", "[sparse][schedules]") {
  Rng rng(20261122);
  for (const auto& family : sparse_schedules().families()) {
    if (family->direction() != Direction::forward) continue;
    double worst = 0;
    for (int round = 0; round < kCases; ++round) {
      const Problem problem = testing::random_problem_for(rng, *family);
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      Call call(problem, rng.bits64(), {Memory::scattered, 1, 1, Dlse::absent});
      const auto schedule = sparse_schedules().make(text, *call.form.get(), io::FastMemory{});
      CHECK(schedule->spec().to_string() == text);
      const auto untouched = call.LSE.bytes();
      testing::check_counts(*schedule, call.forward_arguments());
      const auto expected = cpu::testing::naive_forward(call);
      worst = std::max(worst, cpu::testing::worst_ratio(call.O.view(), expected.O));
      if (family->kernel_class().lse == io::LseOutput::written) {
        worst = std::max(worst, cpu::testing::worst_ratio(call.LSE.view(), expected.LSE));
      } else {
        CHECK(call.LSE.bytes() == untouched);
      }
      REQUIRE(worst <= 1);
    }
    std::printf("%-22s worst error / bound %.3f\n", family->name().c_str(), worst);
  }
}

// Words of one list of every head, from looking at every pair.
io::Words lists_of_all_heads(const Problem& problem, std::int64_t block_q, std::int64_t block_k,
                             Stay of) {
  io::Words sum;
  for (const Sequence& sequence : problem.sequences()) {
    const auto words = testing::list_words(problem, sequence, block_q, block_k);
    const std::int64_t lists = of == Stay::queries ? words.query_blocks : words.key_blocks;
    sum += io::Words(problem.num_heads_q) * (2 * lists + words.tiles + words.bits);
  }
  return sum;
}

template <class Sparse, class Dense>
void check_same_but_lists(const Problem& problem, std::int64_t block_q, std::int64_t block_k,
                          Stay of) {
  INFO(problem.to_string() << " in tiles " << block_q << " x " << block_k);
  const AbiProblem form(problem, 1);
  const io::Traffic sparse = heads_cost(Sparse{block_q, block_k}, *form.get());
  const io::Traffic dense = heads_cost(Dense{block_q, block_k}, *form.get());
  const io::Words lists = lists_of_all_heads(problem, block_q, block_k, of);
  CHECK(sparse.reads == dense.reads + HeadShape::real(lists));
  CHECK(sparse.writes == dense.writes);
}

TEST_CASE("words over lists are those of free skipping and the lists", "[sparse][schedules]") {
  Rng rng(12);
  for (int round = 0; round < 100; ++round) {
    const Problem problem = testing::random_pattern_problem(rng, Direction::forward);
    const std::int64_t block_q = rng.between(1, 9), block_k = rng.between(1, 9);
    check_same_but_lists<BlockFlash2, Flash2>(problem, block_q, block_k, Stay::queries);
    check_same_but_lists<BlockFlash1, Flash1>(problem, block_q, block_k, Stay::keys);
  }
}

// With a pattern of all pairs as many words move as in the dense schedules with the same tiles; the
// lists are read for the scores, and again for each group of columns of V.
TEST_CASE("compact scores of all pairs are the stored scores and the lists",
          "[sparse][schedules]") {
  Rng rng(13);
  for (int round = 0; round < 100; ++round) {
    const auto size = [&rng] { return std::to_string(rng.between(1, 19)); };
    const Problem problem = Problem::parse("hq=2,sq=" + size() + ",sk=" + size() + ",d=" + size() +
                                           ",dv=" + size() + ",mask=block_4_100_1");
    const AbiProblem form(problem, 1);
    const auto words = [&](const auto& schedule) { return heads_cost(schedule, *form.get()); };
    const auto check = [&](const io::Traffic& sparse, const io::Traffic& dense, std::int64_t bq,
                           std::int64_t bk, std::int64_t columns) {
      const auto lists = testing::list_words(problem, problem.sequences().front(), bq, bk);
      const std::int64_t groups = (problem.head_dim_v + columns - 1) / columns;
      const io::Words more = 4 * lists.query_blocks + (1 + groups) * lists.tiles;
      INFO(problem.to_string() << " in tiles " << bq << " x " << bk << ", " << columns);
      CHECK(lists.bits == 0);
      CHECK(sparse.reads == dense.reads + HeadShape::real(problem.num_heads_q * more));
      CHECK(sparse.writes == dense.writes);
    };
    const std::int64_t b = rng.between(1, 9), bq = rng.between(1, 9), bk = rng.between(1, 9);
    const std::int64_t columns = rng.between(1, 9);
    check(words(BlockSquareTiled{b}), words(SquareTiled{b, SquareTiled::kStable}), b, b, b);
    check(words(BlockRank1Tiled{bq, bk, columns}), words(Rank1Tiled{bq, bk, bq, columns}), bq, bk,
          columns);
  }
}

}  // namespace
}  // namespace attest::schedules
