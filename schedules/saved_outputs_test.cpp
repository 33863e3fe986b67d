// Schedules that declare SavedOutputs::read, word by word: every word of O and of LSE that a query
// with two keys needs is loaded.
#include "schedules/testing/saved_outputs.hpp"

#include <string>

#include "core/testing/catch.hpp"
#include "schedules/register.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

TEST_CASE("schedules that declare it read the saved outputs", "[cpu][schedules]") {
  Rng rng(41);
  int declared = 0;
  for (const auto& family : dense_schedules().families()) {
    if (family->kernel_class().saved != io::SavedOutputs::read) continue;
    CHECK(family->direction() == Direction::backward);
    ++declared;
    for (int round = 0; round < 20; ++round) {
      Problem problem = testing::random_problem(rng, Direction::backward);
      if (problem.sequences().size() > 1) problem = Problem::parse("sq=7,sk=9,d=3,mask=window_4_1");
      problem.num_heads_q = problem.num_heads_kv = 1;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      const auto schedule = family->make(io::ScheduleSpec::parse(text), *form.get(), {});
      CHECK(testing::reads_saved_outputs(*schedule, problem));
    }
  }
  CHECK(declared > 8);
}

TEST_CASE("delta of P and dP reads no saved output", "[cpu][schedules]") {
  const Problem problem = Problem::parse("sq=5,sk=4,d=2");
  const AbiProblem form(problem, 1);
  const auto reads = [&](const char* text) {
    return testing::reads_saved_outputs(
        *dense_schedules().make(text, *form.get(), io::FastMemory{}), problem);
  };
  CHECK_FALSE(reads("standard_bwd:bm=2,bn=2,bl=2"));
  CHECK(reads("two_pass_row:bq=2,bk=2"));
}

}  // namespace
}  // namespace attest::schedules
