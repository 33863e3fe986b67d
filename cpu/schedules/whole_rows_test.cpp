// Schedules that declare RowMovement::whole_index, word by word.
#include "cpu/schedules/testing/whole_rows.hpp"

#include <string>
#include <vector>

#include "core/problem.hpp"
#include "core/rng.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "cpu/schedules/testing/random_cases.hpp"
#include "io/recording/word_move.hpp"
#include "io/schedule.hpp"

namespace attest::cpu {
namespace {

std::string why_not_whole(const std::string& schedule) {
  const Problem problem = Problem::parse("sq=7,sk=6,d=2,dv=3");
  const AbiProblem form(problem, 1);
  std::vector<io::WordMove> moves;
  io::WordMoveList list(moves);
  cpu_schedules().make(schedule, *form.get(), io::FastMemory{})->record({}, list);
  return testing::why_not_whole(moves);
}

TEST_CASE("schedules that declare it move the rows of an index together", "[cpu][schedules]") {
  Rng rng(31);
  int declared = 0;
  for (const auto& family : cpu_schedules().families()) {
    if (family->kernel_class().movement != io::RowMovement::whole_index) continue;
    ++declared;
    for (int round = 0; round < 20; ++round) {
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text);
      CHECK(why_not_whole(text) == "");
    }
  }
  CHECK(declared > 0);
}

TEST_CASE("what waits or is stored is no whole index", "[cpu][schedules]") {
  CHECK(why_not_whole("rolling_keys:bk=2,bq=1") == "");
  CHECK(why_not_whole("rolling_keys:bk=2,bq=3") == "a gradient stays and inputs come");
  CHECK(why_not_whole("rolling_queries_bwd:bq=2,bk=1") == "");
  CHECK(why_not_whole("rolling_queries_bwd:bq=2,bk=3") == "a gradient stays and inputs come");
  CHECK(why_not_whole("rolling_p:bq=2,bk=1,gk=2,gq=1,ck=2,cq=1") == "stores P");
  CHECK(why_not_whole("key_stationary_ds:bk=2,bm=2,bn=2") == "stores dS");
}

}  // namespace
}  // namespace attest::cpu
