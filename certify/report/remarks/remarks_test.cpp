#include "certify/report/remarks/remarks.hpp"

#include <algorithm>

#include "certify/audit/seal.hpp"
#include "certify/report/remarks/annotations.hpp"
#include "certify/report/remarks/markdown.hpp"
#include "certify/report/remarks/sarif.hpp"
#include "certify/report/testing/sample_certificate.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// A finding, a known one of another law, and a kernel with a gap.
json sample() {
  json certificate = sample_certificate();
  json& findings = certificate["kernels"][1]["findings"];
  findings.push_back(findings[0]);
  findings[1]["law"] = "ones";
  findings[1]["known"] = true;
  certificate["known_failures"] = {
      {{"kernel", "./<b>.so:x"}, {"law", "ones"}, {"kind", nullptr}, {"outcome", "occurs"}},
      {{"kernel", "./<b>.so:x"}, {"law", "two_keys"}, {"kind", nullptr}, {"outcome", "gone"}}};
  return certificate;
}

TEST_CASE("remarks are findings, violated I/O and gaps", "[report]") {
  json certificate = sample();
  certificate["kernels"][0]["io"]["violations"] = {"words above the closed form"};
  const auto remarks = remarks_of(certificate, {});
  REQUIRE(remarks.size() == 4);
  CHECK(remarks[0].rule == "io");
  CHECK(remarks[1].weight == Weight::error);
  CHECK(remarks[1].place.file == "<b>.so");
  CHECK(remarks[2].weight == Weight::known);
  CHECK(remarks[3].rule == "complete");
  CHECK(remarks[3].weight == Weight::warning);
  CHECK_THROWS_AS(remarks_of(json{{"kernels", {1}}}, {}), InvalidProblem);
}

TEST_CASE("what was not judged is a remark beside findings, too", "[report]") {
  json certificate = sample();
  const std::size_t before = remarks_of(certificate, {}).size();
  certificate["kernels"][1]["incomplete"] = {"the problem sq=9 was not judged", "no case counted"};
  CHECK(remarks_of(certificate, {}).size() == before);
  certificate["kernels"][1]["not_judged"] = {"the problem sq=9 was not judged"};
  CHECK(remarks_of(certificate, {}).size() == before + 1);
  CHECK_THAT(markdown_report(certificate), Catch::Contains("the problem sq=9 was not judged"));
}

TEST_CASE("every remark of a finding tells the mistake and the laws that fail by it", "[report]") {
  json certificate = sample();
  certificate["kernels"][1]["findings"][0]["also"] = {"ones", "two_keys"};
  const auto remarks = remarks_of(certificate, {});
  for (const std::string& text : {github_annotations(remarks), sarif_report(remarks, "0.2.0"),
                                  markdown_report(certificate)}) {
    CHECK_THAT(text, Catch::Contains("equals the result with top-left causal"));
    CHECK_THAT(text, Catch::Contains("also fails: ones, two_keys"));
  }
}

TEST_CASE("annotations are escaped commands, one a line", "[report]") {
  const std::string text = github_annotations(remarks_of(sample(), {"src/a,b.cpp", 3}));
  CHECK_THAT(text,
             Catch::StartsWith(
                 "::error file=src/a%2Cb.cpp,line=3,title=./<b>.so%3Ax reference_forward::O[ba"));
  CHECK_THAT(text, Catch::Contains("\\x1b[31m%0Aequals the result"));
  CHECK_THAT(text, Catch::Contains("\n::notice file="));
  CHECK_THAT(text, Catch::Contains("ones (known failure)::"));
  CHECK_THAT(text, Catch::Contains("\n::warning file=src/a%2Cb.cpp,line=3,title=cpu/partial comp"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("a SARIF log has rules, results, places and suppressions", "[report]") {
  const json log = json::parse(sarif_report(remarks_of(sample(), {"a b.cpp", 0}), "0.2.0"));
  CHECK(log.at("version") == "2.1.0");
  const json& run = log.at("runs").at(0);
  CHECK(run.at("tool").at("driver").at("rules").size() == 3);
  for (const json& rule : run.at("tool").at("driver").at("rules")) {
    CHECK(rule.at("shortDescription").at("text") != rule.at("id"));
  }
  const json& results = run.at("results");
  REQUIRE(results.size() == 3);
  CHECK(results[0].at("level") == "error");
  CHECK_FALSE(results[0].contains("suppressions"));
  CHECK(results[0].at("partialFingerprints").at("kernelAndRule/v1") ==
        "<b>.so:x reference_forward");
  CHECK(results[1].at("suppressions").at(0).at("kind") == "external");
  CHECK(results[2].at("level") == "warning");
  json with_crash = sample();
  with_crash["kernels"][1]["findings"][0]["kind"] = "crash";
  CHECK(json::parse(sarif_report(remarks_of(with_crash, {}), ""))
            .at(json::json_pointer("/runs/0/results/0/partialFingerprints/kernelAndRule~1v1")) ==
        "<b>.so:x reference_forward crash");
  const json& place = results[0].at("locations").at(0).at("physicalLocation");
  CHECK(place.at("artifactLocation").at("uri") == "a%20b.cpp");
  CHECK(place.at("region").at("startLine") == 1);
  CHECK(json::parse(sarif_report({}, "0.2.0")).at("runs").at(0).at("results").empty());
}

TEST_CASE("a summary has a row for each kernel and what is against it", "[report]") {
  const std::string text = markdown_report(sample());
  CHECK_THAT(text, Catch::Contains("| ./&lt;b>.so:x | **refused** | 60 | 42 | 2 | 0.420 |  |"));
  CHECK_THAT(text, Catch::Contains("**Fails**: ./&lt;b>.so:x, reference\\_forward"));
  CHECK_THAT(text, Catch::Contains("reproduce: attest check --kernel"));
  CHECK_THAT(text, Catch::Contains("**Incomplete**: cpu/partial"));
  CHECK_THAT(text, Catch::Contains("two\\_keys: did not occur"));
  CHECK_THROWS_AS(markdown_report(json::object()), InvalidProblem);
  json shard = sample();
  shard["shard"] = "1/2";
  CHECK_THAT(markdown_report(shard),
             Catch::Contains(", shard 1/2\n\n**The certificate has no SHA"));
  seal(shard);
  CHECK_THAT(markdown_report(shard), !Catch::Contains("**The certificate"));
}

}  // namespace
}  // namespace attest::certify
