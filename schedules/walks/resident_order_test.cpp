#include "schedules/walks/resident_order.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/schedule/schedule.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

using Rows = std::vector<std::int64_t>;

template <class Sees>
Problem problem_of(std::int64_t q, std::int64_t k, const Sees& sees) {
  Problem problem = Problem::parse("sq=" + std::to_string(q) + ",sk=" + std::to_string(k) + ",d=2");
  auto mask = std::make_shared<BooleanMask>();
  mask->rows = q;
  mask->columns = k;
  mask->spelling = "file_mask.txt";
  for (std::int64_t i = 0; i < q; ++i) {
    for (std::int64_t j = 0; j < k; ++j) mask->visible.push_back(sees(i, j) ? 1 : 0);
  }
  problem.mask.boolean = mask;
  return problem;
}

Rows order_of(const Problem& problem, Residents residents, std::int64_t length = 2) {
  return resident_order(*AbiProblem(problem, 1).get(), residents, length);
}

Rows natural(std::int64_t count) {
  Rows rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

TEST_CASE("an order of residents has each once", "[cpu][schedules]") {
  Rng rng(7);
  for (int round = 0; round < 50; ++round) {
    const Problem problem = testing::random_problem(rng, Direction::forward);
    for (const Residents residents : {Residents::queries, Residents::keys}) {
      Rows order = order_of(problem, residents);
      const bool keys = residents == Residents::keys;
      INFO(problem.to_string());
      CHECK(order.empty() ==
            (problem.mask.boolean == nullptr || problem.seqlen_q * problem.seqlen_k == 0));
      if (order.empty()) continue;
      std::sort(order.begin(), order.end());
      CHECK(order == natural(keys ? problem.seqlen_k : problem.seqlen_q));
    }
  }
}

TEST_CASE("rows that see the same follow each other", "[cpu][schedules]") {
  const Problem problem = problem_of(6, 4, [](auto i, auto j) { return i % 2 == j % 2; });
  CHECK(order_of(problem, Residents::queries) == Rows{0, 2, 4, 1, 3, 5});
  CHECK(order_of(problem, Residents::keys) == Rows{0, 2, 1, 3});
}

// Class c of a band sees visitors c and c + 1: shuffled, it comes back, one way or the other.
TEST_CASE("a shuffled band is found again", "[cpu][schedules]") {
  Rng rng(3);
  Rows shuffled = natural(12);
  for (std::size_t n = shuffled.size() - 1; n > 0; --n) {
    std::swap(shuffled[n],
              shuffled[static_cast<std::size_t>(rng.between(0, static_cast<std::int64_t>(n)))]);
  }
  const Problem problem = problem_of(12, 13, [&](auto i, auto j) {
    const std::int64_t begin = shuffled[static_cast<std::size_t>(i)];
    return j == begin || j == begin + 1;
  });
  Rows found;
  for (const std::int64_t row : order_of(problem, Residents::queries)) {
    found.push_back(shuffled[static_cast<std::size_t>(row)]);
  }
  if (found.front() > found.back()) std::reverse(found.begin(), found.end());
  CHECK(found == natural(12));
}

TEST_CASE("what has no better order keeps its own", "[cpu][schedules]") {
  const Problem band = problem_of(12, 13, [](auto i, auto j) { return j == i || j == i + 1; });
  CHECK(order_of(band, Residents::queries) == natural(12));
  // Too many classes for a search.
  Rng rng(9);
  const Problem pairs = problem_of(700, 700, [&](auto, auto) { return rng.between(0, 1) == 1; });
  CHECK(order_of(pairs, Residents::keys) == natural(700));
  CHECK(order_of(Problem::parse("sq=8,sk=8,d=2,mask=causal_br"), Residents::queries).empty());
}

TEST_CASE("blocks at random are met in fewer visits in order", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=128,sk=128,d=4,mask=block_8_30_5");
  const AbiProblem form(problem, 1);
  const auto words = [&](const std::string& schedule, const std::string& order) {
    return dense_schedules()
        .make(schedule + ",order=" + order, *form.get(), io::FastMemory{})
        ->closed_form()
        .total_words()
        .value();
  };
  for (const char* schedule :
       {"rolling_queries:bq=24,bk=1", "rolling_queries_bwd:bq=24,bk=1", "rolling_keys:bk=24,bq=1",
        "rolling_p:bq=24,bk=1,gk=24,gq=1,ck=24,cq=1"}) {
    INFO(schedule);
    CHECK(words(schedule, "grouped") < words(schedule, "natural"));
  }
}

// Blocks of 11, of which 4 would fit in 44 rows: who does not see all of them meets them in one
// visit of 43.
TEST_CASE("gaps for blocks that only just do not fit", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=132,sk=137,d=4,mask=block_11_30_5");
  const AbiProblem form(problem, 1);
  CHECK(middle_block(*form.get(), Residents::keys) == 11);
  CHECK(middle_block(*AbiProblem(Problem::parse("sq=4,sk=4,d=2"), 1).get(), Residents::keys) == 0);
  CHECK(gap_to_blocks(43, 11) == 2);
  CHECK(gap_to_blocks(44, 11) == 0);
  CHECK(gap_to_blocks(42, 11) == 0);  // 2 of 42 are too many
  CHECK(gap_to_blocks(62, 16) == 0);
  CHECK(gap_to_blocks(255, 64) == 2);
  CHECK(gap_to_blocks(10, 0) == 0);
  const auto words = [&](const std::string& tiles, const std::string& order) {
    return dense_schedules()
        .make("rolling_keys:" + tiles + ",order=" + order, *form.get(), io::FastMemory{})
        ->closed_form()
        .total_words()
        .value();
  };
  CHECK(words("bk=43,bq=1", "gapped") < words("bk=43,bq=1", "grouped"));
  CHECK(words("bk=44,bq=1", "gapped") == words("bk=44,bq=1", "grouped"));
}

// The search draws at random, but the same numbers everywhere.
// Orders are kept for the next that ask.
TEST_CASE("an order is that of its own length, residents and pattern", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=64,d=2,mask=block_4_25_1");
  const Problem other = Problem::parse("sq=64,d=2,mask=block_4_25_2");
  const Rows first = order_of(problem, Residents::keys, 6);
  CHECK(order_of(problem, Residents::keys, 17) != first);
  CHECK(order_of(problem, Residents::queries, 6) != first);
  CHECK(order_of(other, Residents::keys, 6) != first);
  for (std::int64_t length = 7; length < 20; ++length) order_of(problem, Residents::keys, length);
  CHECK(order_of(problem, Residents::keys, 6) == first);
}

TEST_CASE("an order is the same on every machine", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=8,sk=8,d=2,mask=block_1_40_5");
  CHECK(order_of(problem, Residents::queries) == Rows{0, 3, 7, 2, 1, 6, 4, 5});
}

}  // namespace
}  // namespace attest::schedules
