#include "certify/reproduce/page.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

#include "certify/testing/schema.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

Reproduced sample() {
  Reproduced one{"sample", "a <title>", "attest reproduce sample", 1.5, {}};
  one.findings.claims = {{"a & b", "Somebody 1999", "1 < 2", Outcome::corrected},
                         {"c", "Nobody", "no", Outcome::not_reproduced},
                         {"e", "Nobody", "none", Outcome::not_compared}};
  one.findings.plots = {
      {"drawn", "drawn plot", "M", "words", {{"w", Curve::Kind::bound, {{1, 2}}}}},
      {"undrawn", "other plot", "M", "words", {}}};
  one.findings.tables = {{"table", "a table", {"x", "y, z"}, {{"1", "say \"two\""}}}};
  return one;
}

TEST_CASE("CSV of tables and plots", "[page]") {
  const Reproduced one = sample();
  CHECK(csv(one.findings.tables[0]) == "x,\"y, z\"\r\n1,\"say \"\"two\"\"\"\r\n");
  CHECK(csv(one.findings.plots[0]) == "curve,kind,M,words\r\nw,bound,1,2\r\n");
}

TEST_CASE("the page says every claim, escapes text and needs nothing beside it", "[page]") {
  const std::string page =
      reproduce_page({sample()}, {{"drawn", "<svg id=\"d\"></svg>"}}, "made <here>");
  using Catch::Matchers::Contains;
  CHECK_THAT(page, Contains("a &lt;title&gt;") && Contains("a &amp; b") && Contains("1 &lt; 2"));
  CHECK_THAT(page, Contains("reproduced with a correction") && Contains("not reproduced") &&
                       Contains("not compared"));
  CHECK_THAT(page, Contains("<svg id=\"d\">"));
  CHECK_THAT(page, Contains("not drawn; the points are in undrawn.csv"));
  CHECK_THAT(page, Contains("<pre>attest reproduce sample</pre>") && Contains("made &lt;here&gt;"));
  CHECK_THAT(page, Contains("K1") && Contains("K6"));
  CHECK_THAT(page, !Contains("src=") && !Contains("http-equiv") && !Contains("<link"));
}

TEST_CASE("outcomes are counted from the claims", "[page]") {
  using Counts = std::vector<std::pair<Outcome, std::size_t>>;
  CHECK(outcomes({sample(), sample()}) == Counts{{Outcome::reproduced, 0},
                                                 {Outcome::corrected, 2},
                                                 {Outcome::not_reproduced, 2},
                                                 {Outcome::not_compared, 2}});
  const std::string page = reproduce_page({sample(), sample()}, {}, "");
  using Catch::Matchers::Contains;
  CHECK_THAT(page, Contains("<p>6 claims of the papers") && Contains("<b>0</b>reproduced<") &&
                       Contains("<b>2</b>not reproduced<"));
  // Each button has rows to show.
  CHECK_THAT(page, Contains("data-key=\"not compared\" aria-pressed") &&
                       Contains("<tr data-key=\"not compared\">"));
}

TEST_CASE("formulas of claims, plots and tables are typeset", "[page]") {
  Reproduced one = sample();
  one.findings.claims[0].text = "words grow as N^2 d^2/M for M >= d^2";
  one.findings.plots[1].title = "over sqrt(M)";
  one.findings.tables[0].columns[0] = "d_k";
  using Catch::Matchers::Contains;
  CHECK_THAT(reproduce_page({one}, {}, ""),
             Contains("N<sup>2</sup> d<sup>2</sup>/M for M \u2265 d<sup>2</sup>") &&
                 Contains("over \u221a<span") && Contains("d<sub>k</sub></th>"));
}

TEST_CASE("the results as JSON have every required field of the schema", "[page]") {
  nlohmann::json object = reproduce_json({sample()});
  object["version"] = "test";
  object["host"] = nlohmann::json::object();
  const auto schema = nlohmann::json::parse(std::ifstream(ATTEST_REPRODUCE_SCHEMA));
  check_against(object, schema);
}

}  // namespace
}  // namespace attest::certify
