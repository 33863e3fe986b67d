// As schedules/saved_outputs_test, for the schedules of this room.
#include "schedules/testing/saved_outputs.hpp"

#include "core/testing/catch.hpp"
#include "schedules/lists/testing/pattern_cases.hpp"
#include "schedules/testing/random_cases.hpp"

namespace attest::schedules {
namespace {

TEST_CASE("backward schedules over lists read the saved outputs", "[sparse][schedules]") {
  Rng rng(41);
  for (const auto& family : testing::sparse_schedules().families()) {
    if (family->direction() != Direction::backward) continue;
    CHECK(family->kernel_class().saved == io::SavedOutputs::read);
    for (int round = 0; round < 20; ++round) {
      Problem problem = testing::random_problem_for(rng, *family);
      problem.batch = problem.num_heads_q = problem.num_heads_kv = 1;
      const std::string text = testing::random_schedule(rng, *family);
      INFO(text << " on " << problem.to_string());
      const AbiProblem form(problem, 1);
      const auto schedule = family->make(io::ScheduleSpec::parse(text), *form.get(), {});
      CHECK(testing::reads_saved_outputs(*schedule, problem));
    }
  }
}

}  // namespace
}  // namespace attest::schedules
