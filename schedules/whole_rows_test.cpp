// Schedules that move the rows of an index together (RowMovement::whole_index), word by word.
#include "schedules/testing/whole_rows.hpp"

#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "io/recording/word_move.hpp"
#include "io/schedule/schedule.hpp"
#include "io/schedule/schedule_count.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

// One head, with and without a mask.
struct Case {
  Problem problem;
  AbiProblem form{problem, 1};

  explicit Case(const std::string& text) : problem(Problem::parse(text)) {}

  std::vector<io::WordMove> record(const std::string& schedule) const {
    std::vector<io::WordMove> moves;
    io::WordMoveList list(moves);
    dense_schedules().make(schedule, *form.get(), io::FastMemory{})->record({}, list);
    return moves;
  }

  io::KernelClass class_of(const std::string& schedule) const {
    const std::string name = io::ScheduleSpec::parse(schedule).name;
    return io::class_of(dense_schedules().find(name),
                        *dense_schedules().make(schedule, *form.get(), io::FastMemory{}), problem);
  }
};

constexpr const char* kCases[] = {"sq=7,sk=6,d=2", "sq=7,sk=6,d=2,mask=causal_br",
                                  "sq=9,sk=8,d=2,mask=block_2_50_1",
                                  "sq=8,sk=9,d=2,mask=random_40_2"};

TEST_CASE("schedules that declare it move the rows of an index together", "[cpu][schedules]") {
  Rng rng(31);
  int declared = 0, single_pass = 0, of_tiles = 0, least = 0, more = 0;
  for (const auto& family : dense_schedules().families()) {
    if (family->direction() != Direction::backward) continue;
    for (int round = 0; round < 40; ++round) {
      const Case on(kCases[rng.between(0, 3)]);
      const std::string text = testing::random_schedule(rng, *family, 4);
      const io::KernelClass kernel = on.class_of(text);
      if (kernel.movement != io::RowMovement::whole_index) continue;
      INFO(text << " on " << on.problem.to_string());
      ++declared;
      if (family->kernel_class().movement != io::RowMovement::whole_index) ++of_tiles;
      const std::vector<io::WordMove> moves = on.record(text);
      CHECK(testing::why_not_whole(moves) == "");
      if (kernel.evaluation != io::Evaluation::once) continue;
      // (4 N d - S) / 3 words, which keys that come once and queries that need no other dO reach.
      ++single_pass;
      const testing::VisitWords words = testing::visit_words(moves);
      const std::int64_t at_least = 4 * words.arrivals - words.once;
      CHECK(3 * words.moved >= at_least);
      if (3 * words.moved == at_least) ++least;
      if (words.arrivals > words.once) ++more;
    }
  }
  CHECK(declared > 100);
  CHECK(single_pass > 50);
  CHECK(of_tiles > 10);
  CHECK(least > 0);
  CHECK(more > 50);
}

TEST_CASE("what waits or is stored is no whole index", "[cpu][schedules]") {
  const Case full(kCases[0]);
  const auto whole = [&](const std::string& schedule) {
    const bool said = full.class_of(schedule).movement == io::RowMovement::whole_index;
    const std::string why_not = testing::why_not_whole(full.record(schedule));
    CHECK(said == why_not.empty());
    return why_not;
  };
  CHECK(whole("rolling_keys:bk=2,bq=1") == "");
  CHECK(whole("rolling_keys:bk=2,bq=3") == "a gradient stays and inputs come");
  CHECK(whole("rolling_queries_bwd:bq=2,bk=1") == "");
  CHECK(whole("rolling_queries_bwd:bq=2,bk=3") == "a gradient stays and inputs come");
  // Who visits alone stays between its visits.
  const auto alone = [](const char* problem, const std::string& schedule) {
    return Case(problem).class_of(schedule).movement != io::RowMovement::whole_index;
  };
  const Case one_query("sq=1,sk=12,d=2");
  CHECK(testing::why_not_whole(one_query.record("rolling_keys:bk=2,bq=1")) != "");
  CHECK(alone("sq=1,sk=12,d=2", "rolling_keys:bk=2,bq=1"));
  CHECK(alone("d=2,mask=cu_1x40_30x30", "rolling_keys:bk=2,bq=1"));
  CHECK_FALSE(alone("d=2,mask=cu_2x40_30x30", "rolling_keys:bk=2,bq=1"));
  CHECK(alone("sq=12,sk=1,d=2", "rolling_queries_bwd:bq=2,bk=1"));
  CHECK(alone("b=2,sq=12,sk=9,d=2,mask=lengths_1_9", "rolling_queries_bwd:bq=2,bk=1"));
  CHECK_FALSE(alone("b=2,sq=12,sk=9,d=2,mask=lengths_0_9", "rolling_queries_bwd:bq=2,bk=1"));
  CHECK(whole("rolling_p:bq=2,bk=1,gk=2,gq=1,ck=2,cq=1") == "stores P");
  CHECK(whole("key_stationary_ds:bk=2,bm=2,bn=2") == "stores dS");
}

// The statement of one visit does not hold for schedules whose gradients wait.
TEST_CASE("where gradients wait fewer words move than with one visit of whole rows",
          "[cpu][schedules]") {
  const testing::VisitWords words =
      testing::visit_words(Case(kCases[0]).record("rolling_keys:bk=2,bq=7"));
  CHECK(3 * words.moved < 4 * words.arrivals - words.once);
}

}  // namespace
}  // namespace attest::schedules
