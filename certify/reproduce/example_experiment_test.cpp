// The how-to's experiment, which is nowhere named but in its own file.
#include "certify/reproduce/experiment.hpp"
#include "certify/reproduce/testing/altered_schedules.hpp"
#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

TEST_CASE("a file is an experiment", "[reproduce]") {
  const Experiment& experiment = find_experiment("causal_halves");
  CHECK(experiments().size() == 1);
  const Findings findings = experiment.run(testing::laboratory(dense_schedules()));
  REQUIRE(findings.claims.size() == 1);
  CHECK(findings.claims[0].outcome == Outcome::reproduced);
  // Schedules that move as many words with a mask as without do not follow the claim.
  const io::ScheduleRegistry flat = testing::flat_schedules({1});
  CHECK(experiment.run(testing::laboratory(flat)).claims[0].outcome == Outcome::not_reproduced);
}

}  // namespace
}  // namespace attest::certify
