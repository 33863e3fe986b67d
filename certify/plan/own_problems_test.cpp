#include "certify/plan/own_problems.hpp"

#include <cstdio>
#include <string>

#include "certify/campaign/campaign.hpp"
#include "certify/campaign/merge.hpp"
#include "certify/files.hpp"
#include "certify/plan/plan.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

using Words = std::vector<std::string>;

std::string canonical(const char* problem) { return Problem::parse(problem).to_string(); }

class File {
 public:
  explicit File(const std::string& text) { write_file(path_, text); }
  ~File() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "own_problems_test.txt";
};

TEST_CASE("a file holds a problem a line, and comments", "[own]") {
  const File file("# what we serve\n\n  sq=7,d=4  # short\r\nsq=9,sk=3,d=2\nsq=7,sk=7,d=4\n");
  const Words expected{canonical("sq=7,d=4"), canonical("sq=9,sk=3,d=2")};
  CHECK(read_problems(file.path()) == expected);
  const Words all{canonical("sq=1,d=1"), expected[0], expected[1]};
  CHECK(own_problems({"d=1,sq=1", "sq=7,d=4"}, file.path()) == all);
  CHECK(own_problems({}, "").empty());
}

TEST_CASE("a line that is no problem is named", "[own]") {
  {
    const File file("sq=7,d=4\n# more\nsq=7,dd=4\n");
    CHECK_THROWS_WITH(read_problems(file.path()),
                      Catch::StartsWith("own_problems_test.txt:3: ") && Catch::Contains("dd"));
  }
  {
    const File binary(std::string("sq=7,d=4\nsq=7\0,d=4\n", 19));
    CHECK_THROWS_WITH(read_problems(binary.path()),
                      Catch::StartsWith("own_problems_test.txt:2: holds a byte 0"));
  }
  CHECK_THROWS_AS(own_problems({"sq=x"}, ""), InvalidProblem);
  CHECK_THROWS_WITH(read_problems("no/such/file"), Catch::Contains("no/such/file"));
  const File empty("# nothing\n");
  CHECK_THROWS_WITH(read_problems(empty.path()), Catch::Contains("holds no problem"));
}

CampaignOptions with(const Words& problems) {
  CampaignOptions options;
  options.cases = 0;
  options.shapes = Shapes::none;
  options.law = "reference_forward";
  options.problems = own_problems(problems, "");
  return options;
}

CampaignResult campaign(const attest_kernel& kernel, const CampaignOptions& options) {
  return run_campaign(kernel, options, [](std::uint64_t, std::uint64_t) {});
}

TEST_CASE("own problems are checked, and a defect in one of them found", "[own]") {
  const CampaignOptions options = with({"sq=2101,sk=2101,d=2,mask=causal_br", "sq=3,sk=2101,d=1"});
  const auto plan =
      planned_cases(fixtures::defective_kernel(fixtures::Defect::none).description, options);
  REQUIRE(plan.size() >= 2);
  CHECK(plan.back().own);
  CHECK(plan.back().c.problem.to_string() == options.problems.back());
  const CampaignResult good = campaign(fixtures::defective_kernel(fixtures::Defect::none), options);
  CHECK(good.findings.empty());
  CHECK(good.gaps.empty());
  CHECK(good.sizes.at("causal").sampled.seqlen_q == 2101);
  CHECK(good.sizes.at("none").whole.seqlen_k == 2101);
  const CampaignResult broken =
      campaign(fixtures::defective_kernel(fixtures::Defect::key_2100_dropped), options);
  CHECK(broken.findings.size() == 1);
}

TEST_CASE("an own problem that is not judged is a gap", "[own]") {
  attest_kernel narrow = fixtures::defective_kernel(fixtures::Defect::none);
  narrow.description.features &= ~static_cast<std::uint32_t>(ATTEST_CAUSAL_BOTTOM_RIGHT);
  const CampaignResult result =
      campaign(narrow, with({"sq=3,sk=5,d=2,mask=causal_br", "sq=3,sk=5,d=2"}));
  REQUIRE(result.gaps.size() == 1);
  CHECK_THAT(result.gaps.front(), Catch::StartsWith("the problem ") &&
                                      Catch::Contains("mask=causal_br") &&
                                      Catch::Contains("not claimed: causal bottom-right"));
  CHECK(outcome(result) == "incomplete");
}

TEST_CASE("the reason is that of the problem, whatever else is not claimed", "[own]") {
  attest_kernel narrow = fixtures::defective_kernel(fixtures::Defect::none);
  narrow.description.features &= ~static_cast<std::uint32_t>(ATTEST_CAUSAL_BOTTOM_RIGHT);
  for (const std::uint32_t only : {ATTEST_FORWARD, ATTEST_BACKWARD}) {
    narrow.description.directions = only;
    CampaignOptions options = with({"sq=3,sk=5,d=2,mask=causal_br"});
    options.law.reset();
    options.cases = 1;
    const CampaignResult result = campaign(narrow, options);
    REQUIRE(result.unjudged.size() == 1);
    CHECK_THAT(result.unjudged.begin()->second,
               Catch::Contains("not claimed: causal bottom-right"));
  }
}

TEST_CASE("own problems are part of what a journal is of", "[own]") {
  const attest_kernel& kernel = fixtures::defective_kernel(fixtures::Defect::none);
  const auto header = campaign_header({&kernel}, with({"sq=3,d=2"}));
  CHECK_NOTHROW(
      require_same_campaign(header, campaign_header({&kernel}, with({"sq=3,sk=3,d=2"})), "here"));
  CHECK_THROWS_WITH(
      require_same_campaign(header, campaign_header({&kernel}, with({"sq=4,d=2"})), "here"),
      Catch::Contains("its problems"));
}

}  // namespace
}  // namespace attest::certify
