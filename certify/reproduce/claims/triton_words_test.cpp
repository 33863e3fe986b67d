#include "certify/reproduce/claims/triton_words.hpp"

#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "schedules/register.hpp"

namespace attest::certify {
namespace {

std::vector<Outcome> outcomes(const std::vector<TritonLaunch>& launches) {
  std::vector<Outcome> list;
  for (const Claim& claim : triton_words(dense_schedules(), launches).claims) {
    list.push_back(claim.outcome);
  }
  return list;
}

TEST_CASE("what was recorded of Triton's words reproduces the claims", "[triton_words]") {
  const std::vector<TritonLaunch> launches = parse_triton_words(recorded_triton_words());
  REQUIRE(launches.size() >= 8);
  CHECK(outcomes(launches) == std::vector<Outcome>(3, Outcome::reproduced));
}

TEST_CASE("other words, fewer words and no small fast memory are seen", "[triton_words]") {
  const TritonLaunch good = {256, 16, 512, 131072, 4194304, 4194304, 17303552, 90624, false};
  CHECK(outcomes({good}) == std::vector<Outcome>(3, Outcome::reproduced));
  TritonLaunch twice = good;
  twice.read_q *= 2;
  CHECK(outcomes({twice})[0] == Outcome::not_reproduced);
  TritonLaunch few = good;
  few.moved_bytes = 1000;
  CHECK(outcomes({few})[1] == Outcome::not_reproduced);
  CHECK(outcomes({few})[2] == Outcome::not_reproduced);
  TritonLaunch large = good;
  large.fast_bytes *= 2;
  CHECK(outcomes({large})[1] == Outcome::not_compared);
  TritonLaunch spilled = good;
  spilled.spills = true;
  const Findings found = triton_words(dense_schedules(), {spilled});
  CHECK(found.plots.empty());
  CHECK(found.tables[0].rows.size() == 1);
  CHECK(found.claims[1].outcome == Outcome::not_compared);
}

TEST_CASE("lines that are no records are refused with their number", "[triton_words]") {
  CHECK(parse_triton_words("\n").empty());
  CHECK_THROWS_WITH(parse_triton_words("\n{\"head_dim\": 3}"),
                    Catch::Contains("line 2") && Catch::Contains("tile"));
  CHECK_THROWS_AS(parse_triton_words("[1"), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
