#include "certify/report/html/index.hpp"

#include "certify/report/testing/sample_certificate.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using Catch::Contains;

nlohmann::json sample_papers() {
  const auto claim = [](const char* outcome) {
    return nlohmann::json{{"text", "t"}, {"source", "s"}, {"measured", "m"}, {"outcome", outcome}};
  };
  return {
      {"schema", "attest-reproduce-1"},
      {"experiments",
       {{{"name", "one"},
         {"title", "words for M >= d^2 & <more>"},
         {"claims", {claim("reproduced"), claim("reproduced"), claim("not reproduced")}}},
        {{"name", "two"}, {"title", "two"}, {"claims", {claim("reproduced with a correction")}}}}}};
}

TEST_CASE("the first page links and counts", "[html]") {
  const IndexLinks links{"report.html", "certificate.json", "", "reproduce/index.html"};
  const std::string page = index_page(sample_certificate(), sample_papers(), links);
  CHECK_THAT(page, Contains("<div class=\"word\">Refused</div>") &&
                       Contains("href=\"report.html#kernel-2\"") &&
                       Contains("href=\"certificate.json\"") && !Contains("JUnit"));
  CHECK_THAT(page, Contains("href=\"reproduce/index.html#two\"") && Contains("4 claims"));
  CHECK_THAT(page, Contains("<b>2</b>reproduced<") && Contains("<b>1</b>not reproduced<") &&
                       Contains("<b>0</b>not compared<"));
  CHECK_THAT(page, Contains("M \u2265 d<sup>2</sup> &amp; &lt;more&gt;"));
  CHECK_THAT(page, !Contains("http") && !Contains("src=") && !Contains("<link"));
}

TEST_CASE("names that links spell otherwise lead to their files", "[html]") {
  const IndexLinks links{"r#1.html", "a b?%41.json", "../\u00e4/x:y&'.xml", "#/index.html"};
  const std::string page = index_page(sample_certificate(), sample_papers(), links);
  for (const char* link : {"\"r%231.html\"", "\"r%231.html#kernel-2\"", "\"a%20b%3F%2541.json\"",
                           "\"../%C3%A4/x%3Ay%26%27.xml\"", "\"%23/index.html#two\""}) {
    CHECK_THAT(page, Contains("href=" + std::string(link)));
  }
}

TEST_CASE("the first page without the papers has none of them", "[html]") {
  const std::string page = index_page(sample_certificate(), nullptr, {});
  CHECK_THAT(page, Contains("cpu/good") && !Contains("claims of the papers") && !Contains("href"));
}

TEST_CASE("objects of other schemas make no first page", "[html]") {
  CHECK_THROWS_AS(index_page(sample_certificate(), nlohmann::json::array(), {}), InvalidProblem);
  CHECK_THROWS_AS(index_page(sample_certificate(), {{"schema", "other"}}, {}), InvalidProblem);
  CHECK_THROWS_AS(index_page(sample_certificate(), {{"schema", "attest-reproduce-1"}}, {}),
                  InvalidProblem);
  CHECK_THROWS_AS(index_page(nlohmann::json::object(), nullptr, {}), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
