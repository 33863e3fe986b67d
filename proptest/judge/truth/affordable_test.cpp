#include "proptest/judge/truth/affordable.hpp"

#include <string>

#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::proptest {
namespace {

void require(const char* problem, Work work, std::uint32_t directions = ATTEST_FORWARD) {
  attest_description description{};
  description.directions = directions;
  require_affordable(description, Problem::parse(problem), work);
}

TEST_CASE("a problem that no machine has the memory for names its longest axis", "[affordable]") {
  for (const Work work : {Work::calls, Work::judgement}) {
    CHECK_NOTHROW(require("sq=64,sk=64,d=64", work));
    CHECK_THROWS_WITH(require("sq=1000000000000,sk=1,d=8", work),
                      Catch::Contains("this machine has") && Catch::EndsWith("make sq smaller"));
    CHECK_THROWS_WITH(require("sq=1,sk=1000000000000,d=8", work),
                      Catch::EndsWith("make sk smaller"));
  }
}

TEST_CASE("calls that are looked at for races need more memory than calls", "[affordable]") {
  const auto most_rows = [](Work work) {
    std::int64_t rows = 1;
    for (;; rows *= 2) {
      try {
        require(("sk=1,d=8,sq=" + std::to_string(rows)).c_str(), work);
      } catch (const InvalidProblem&) {
        return rows;
      }
    }
  };
  CHECK(most_rows(Work::calls) >= 4 * most_rows(Work::calls_with_races));
}

TEST_CASE("judging needs matrices of rows and keys that calls do not", "[affordable]") {
  const char* const square = "sq=10000000,sk=10000000,d=1";
  CHECK_NOTHROW(require(square, Work::calls));
  CHECK_THROWS_WITH(require(square, Work::judgement), Catch::StartsWith("problem: judging it"));
  CHECK_THROWS_WITH(require("sq=1000000000000,sk=1,d=8", Work::calls),
                    Catch::StartsWith("problem: running it"));
}

TEST_CASE("a sample of what is too long needs less memory", "[affordable]") {
  const char* const square = "sq=10000000,sk=10000000,d=1";
  CHECK_THROWS_AS(require(square, Work::judgement), InvalidProblem);
  CHECK_THROWS_AS(require("sq=10000000000,sk=10000000000,d=1", Work::sampled_judgement),
                  InvalidProblem);
  const char* const served = "hq=4,hkv=2,sq=32768,sk=32768,d=64";
  CHECK_THROWS_WITH(require(served, Work::judgement), Catch::StartsWith("problem: judging it"));
  CHECK_NOTHROW(require(served, Work::sampled_judgement));
}

}  // namespace
}  // namespace attest::proptest
