#include "certify/report/html/html.hpp"

#include <functional>
#include <pugixml.hpp>

#include "certify/audit/seal.hpp"
#include "certify/report/certificate_fields.hpp"
#include "certify/report/html/markup.hpp"
#include "certify/report/html/sampled.hpp"
#include "certify/report/testing/sample_certificate.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "proptest/judge/truth/sample.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify {
namespace {

using Catch::Contains;

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++count;
  }
  return count;
}

TEST_CASE("every text of a certificate is escaped", "[html]") {
  CHECK(escaped("<a href=\"x\">&'\x1b\xff") == "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\\x1b\\xff");
  const std::string page = html_report(sample_certificate());
  CHECK_THAT(page, !Contains("<b>.so"));
  CHECK_THAT(page, Contains("./&lt;b&gt;.so:x"));
  CHECK_THAT(page, Contains("&lt;nan&gt;"));
  CHECK_THAT(page, !Contains("\x1b"));
  // Whatever text is put anywhere, no new element comes of it.
  const std::string evil = "</style></svg></pre><script>alert(1)</script>\"'><img src=x onerror=1>";
  const std::function<void(nlohmann::json&)> poison = [&](nlohmann::json& part) {
    if (part.is_string()) part = evil;
    if (part.is_structured()) {
      for (auto& inner : part) poison(inner);
    }
  };
  nlohmann::json all = sample_certificate();
  poison(all);
  const std::string poisoned = html_report(all);
  CHECK(count_of(poisoned, "<script") == 1);  // the page's own
  CHECK_THAT(poisoned, !Contains("<img"));
  nlohmann::json keys = sample_certificate();
  for (auto& kernel : keys["kernels"]) {
    kernel["laws"][evil] = kernel["laws"]["one_hot_probe"];
    kernel["worst"][evil] = kernel["worst"]["O"];
    kernel["coverage"]["not_claimed"][evil] = 1;
    kernel["description"]["numerics"][evil] = 1;
  }
  CHECK(count_of(html_report(keys), "<script") == 1);
  CHECK_THAT(html_report(keys), !Contains("<img"));
}

TEST_CASE("laws of the same cause, hints and refusals are shown", "[html]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& broken = certificate["kernels"][1];
  broken["findings"][0]["also"] = {"one_hot_probe", "<b>"};
  broken["findings"][0]["hints"] = {"would pass with <i>"};
  broken["coverage"]["refused"] = {
      {{"message", "refused; it says: <u>"}, {"checks", 1093}, {"example", "attest check"}}};
  const std::string page = html_report(certificate);
  CHECK_THAT(
      page,
      Contains("also fails: <span class=\"mono\"><a href=\"#law-one_hot_probe\">one_hot_probe</a> "
               "<a href=\"#law-&lt;b&gt;\">&lt;b&gt;</a></span>"));
  CHECK_THAT(page, Contains("would pass with &lt;i&gt;"));
  CHECK_THAT(page,
             Contains("<li>refused; it says: &lt;u&gt; (1\u2009093 checks), first: attest check"));
}

TEST_CASE("problems break after commas, histograms leave room for long names", "[html]") {
  CHECK(breakable("b=1,mask=<") == "b=1,<wbr/>mask=&lt;");
  nlohmann::json certificate = sample_certificate();
  certificate["kernels"] = nlohmann::json::array({certificate["kernels"][0]});
  nlohmann::json& worst = certificate["kernels"][0]["worst"];
  const nlohmann::json of_output = worst["O"];
  worst = {{"O", of_output}};
  CHECK_THAT(html_report(certificate), Contains(">worst 0."));
  worst = {{"sum of dBias over keys", of_output}};
  CHECK_THAT(html_report(certificate), !Contains(">worst 0.") && Contains(">0."));
}

TEST_CASE("a law leads to what it says", "[html]") {
  const std::string page = html_report(sample_certificate());
  CHECK_THAT(page, Contains("<a href=\"#law-reference_forward\">reference_forward</a>"));
  CHECK_THAT(page, Contains("id=\"law-reference_forward\">reference_forward</dt><dd>" +
                            escaped(proptest::find_law("reference_forward").statement)));
  nlohmann::json other = sample_certificate();
  other["kernels"][0]["laws"]["of_later"] = sample_law(1, 0, 0);
  CHECK_THAT(html_report(other),
             Contains("id=\"law-of_later\">of_later</dt><dd>not a law of this"));
}

TEST_CASE("a roundoff is told for each type of tensors", "[html]") {
  CHECK_THAT(html_report(sample_certificate()), Contains("p_roundoff: bf16 0.00390625, f32 0.0"));
}

TEST_CASE("a kernel of which no check ran is told so", "[html]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& kernel = certificate["kernels"][0];
  kernel["verdict"] = "unsupported";
  kernel["checks"] = {{"made", 0}, {"passed", 0}, {"vacuous", 0}};
  CHECK(count_of(html_report(certificate), "<span class=\"chip warn\">no check ran</span>") == 2);
  CHECK(verdict_of(kernel) == "no check ran");
  kernel["checks"]["made"] = 4;
  CHECK(verdict_of(kernel) == "unsupported");
  kernel["checks"].erase("made");
  CHECK(verdict_of(kernel) == "unsupported");
}

TEST_CASE("processors of shards beside that of the merge are named", "[html]") {
  nlohmann::json certificate = sample_certificate();
  CHECK_THAT(html_report(certificate), Contains("P, 2 threads<"));
  certificate["host"]["processors"] = {"A<", "P", "Z"};
  CHECK_THAT(html_report(certificate), Contains("P, 2 threads; shards on A&lt;, Z too<"));
}

TEST_CASE("a campaign that ended early shows the cases it met of those planned", "[html]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& kernel = certificate["kernels"][0];
  CHECK_THAT(html_report(certificate), Contains("<td class=\"n\">60</td>"));
  kernel["cases"] = 12;
  CHECK_THAT(html_report(certificate), Contains("<td class=\"n\">12 of 60</td>"));
  kernel.erase("planned_cases");  // as older certificates
  CHECK_THAT(html_report(certificate), Contains("<td class=\"n\">12</td>"));
}

TEST_CASE("the sizes covered stand below the coverage", "[html]") {
  nlohmann::json certificate = sample_certificate();
  CHECK_THAT(html_report(certificate),
             Catch::Contains("causal</span>: seqlen_q &lt;= 2211 (by sample; whole &lt;= 40)"));
  CHECK_THAT(html_report(certificate), !Contains("by sample: "));  // as older ones
  for (nlohmann::json& kernel : certificate["kernels"]) {
    kernel["coverage"]["sampled_positions"] = 17;
  }
  CHECK_THAT(html_report(certificate), Contains("by sample: 17 rows and 17 keys of each long"));
  for (nlohmann::json& kernel : certificate["kernels"]) {
    kernel["coverage"].erase("sizes");  // as older ones
  }
  CHECK_THAT(html_report(certificate), !Catch::Contains("sizes covered"));
}

TEST_CASE("how many a sample has is said where one was judged", "[sampled]") {
  SizesByKind sizes;
  sizes["none"].include(Problem::parse("sq=64,d=8"));
  CHECK(sampled_positions(sizes) == 0);
  CHECK(sampled_words(0).empty());
  sizes["none"].include(Problem::parse("sq=100000,d=8"));
  CHECK(sampled_positions(sizes) == proptest::kRandomPositions);
}

TEST_CASE("the bytes of a library are named", "[html]") {
  nlohmann::json certificate = sample_certificate();
  CHECK_THAT(html_report(certificate), !Contains("SHA-256 of the file"));
  certificate["kernels"][0]["library_sha256"] = "1f2e<b>";
  CHECK_THAT(html_report(certificate), Contains("SHA-256 of the file: <span class=\"mono\">"
                                                "1f2e&lt;b&gt;</span>"));
}

TEST_CASE("words that the code counted stand for those of its schedule", "[html]") {
  nlohmann::json sample = sample_certificate();
  CHECK_THAT(html_report(sample), Contains(">" + readable(3000) + "</td>"));
  CHECK_THAT(html_report(sample), !Contains("counted in the code as it ran"));
  for (nlohmann::json& kernel : sample["kernels"]) {
    kernel["io"]["table"][0]["of_code"] = {{"moved", 2600}, {"lower", nullptr}};
  }
  CHECK_THAT(html_report(sample), Contains(">" + readable(2600) + "</td>"));
  CHECK_THAT(html_report(sample), !Contains(">" + readable(3000) + "</td>"));
  CHECK_THAT(html_report(sample), Contains("counted in the code as it ran"));
}

TEST_CASE("where a kernel ran stands beside its verdict", "[html]") {
  nlohmann::json certificate = sample_certificate();
  const std::string beside = "</span> <span class=\"small\">emulated on the &lt;host&gt;</span>";
  // Three kernels, in the overview and above each.
  CHECK(count_of(html_report(certificate), beside) == 2 * 3);
  for (nlohmann::json& kernel : certificate["kernels"]) kernel.erase("ran");  // as older ones
  CHECK_THAT(html_report(certificate), !Contains("emulated on the"));
}

TEST_CASE("a page says what the certificate says, in itself", "[html]") {
  const std::string page = html_report(sample_certificate());
  CHECK_THAT(page, Contains("<div class=\"word\">Refused</div>"));
  CHECK_THAT(page, Contains("<b>1 of 3</b> kernels certified"));
  CHECK_THAT(page, Contains("equals the result with top-left causal alignment"));
  CHECK_THAT(page, Contains(escaped(kSampleReproduce)));
  CHECK_THAT(page, Contains("failures/x.safetensors"));
  CHECK_THAT(page, Contains("claimed, never exercised: window"));
  CHECK_THAT(page, Contains("<li>K4 rows &lt;2: fails, &lt;1</li><li>declared: no score"));
  CHECK_THAT(page, Contains("6 of 7") && Contains("<li>mask=window dtype=f32</li>"));
  CHECK_THAT(page, Contains("largest term of the bound of O: accumulation"));
  CHECK_THAT(page, Contains("worst 0.420"));
  CHECK_THAT(page, Contains("1.50\u00d7"));
  CHECK_THAT(page, Contains("none applies"));
  CHECK_THAT(page, Contains("prefers-color-scheme:dark"));
  // Nothing is loaded from elsewhere.
  CHECK_THAT(page, !Contains("http") && !Contains("src=") && !Contains("url(") &&
                       !Contains("@import") && !Contains("<link"));
  // gqa was never exercised in bf16, window in neither: of three kernels.
  CHECK(count_of(page, "class=\"missing\"") == 3 * 4);
  nlohmann::json good = sample_certificate();
  good["kernels"].erase(1);
  good["kernels"].erase(1);
  good["exit_code"] = 0;
  CHECK_THAT(html_report(good), Contains("<div class=\"word\">Certified</div>") &&
                                    Contains("<span><b>1 of 1</b> kernel certified</span>"));
  const auto part = [&](const char* verdict) {
    nlohmann::json certificate = good;
    certificate["kernels"][0]["verdict"] = verdict;
    return html_report(certificate);
  };
  CHECK_THAT(part("law_holds"),
             Contains("<div class=\"word\">The law holds</div>") &&
                 Contains("law holds on <b>1 of 1</b> kernel; certifies nothing"));
  CHECK_THAT(part("mask_holds"),
             Contains("holds on <b>1 of 1</b> kernel; certifies no other mask"));
  CHECK_THAT(part("shard_passed"),
             Contains("<div class=\"word\">Shard passed</div>") &&
                 Contains("shard passed on <b>1 of 1</b> kernel; certifies nothing without"));
  for (const char* verdict : {"law_holds", "mask_holds", "shard_passed"}) {
    CHECK_THAT(part(verdict), !Contains("kernel certified"));
  }
  good["shard"] = "1/<2>";
  CHECK_THAT(html_report(good), Contains("<span>shard 1/&lt;2&gt;</span>"));
  seal(good);
  CHECK_THAT(html_report(good), !Contains("SHA-256 differs") && Contains("card banner good"));
  good["tier"] = "another";
  CHECK_THAT(html_report(good), Contains("card banner warn"));
  good["exit_code"] = 3;
  CHECK_THAT(html_report(good), Contains("was changed after it was made: its SHA-256 differs"));
  CHECK_THAT(html_report(good), Contains("Not certified"));
  good["exit_code"] = 4;
  CHECK_THAT(html_report(good), Contains("A kernel crashed"));
}

TEST_CASE("date, commit and SHA-256 stand once, at the foot", "[html]") {
  nlohmann::json certificate = sample_certificate();
  const std::string without = html_report(certificate);
  CHECK_THAT(without, !Contains("of commit") && !Contains("SHA-256 of the certificate"));
  certificate["timings"]["date"] = "2026-01-31T12:00:00Z";
  certificate["build"]["commit"] = "0123abcd<b>";
  seal(certificate);
  const std::string page = html_report(certificate);
  const std::string foot = page.substr(page.find("<footer>"));
  const auto sum = certificate["sha256"].get<std::string>();
  for (const std::string& once : {std::string("made 2026-01-31T12:00:00Z, by Attest of commit"),
                                  std::string(">0123abcd&lt;b&gt;<"), ">" + sum + "<"}) {
    CAPTURE(once);
    CHECK(count_of(page, once) == 1);
    CHECK_THAT(foot, Contains(once));
  }
}

TEST_CASE("elements are closed in order", "[html]") {
  std::string page = html_report(sample_certificate());
  // HTML's empty elements, closed for an XML parser.
  for (const std::string part : {"<meta charset=\"utf-8\">", "initial-scale=1\">", "<br>"}) {
    for (std::size_t at = page.find(part); at != std::string::npos; at = page.find(part, at + 2)) {
      page.insert(at + part.size() - 1, "/");
    }
  }
  for (const std::string part : {" open>"}) {
    for (std::size_t at = page.find(part); at != std::string::npos; at = page.find(part)) {
      page.replace(at, part.size(), ">");
    }
  }
  page.erase(0, page.find("<html"));
  pugi::xml_document xml;
  const pugi::xml_parse_result parsed = xml.load_string(page.c_str());
  INFO(parsed.description() << " at " << page.substr(static_cast<std::size_t>(parsed.offset), 80));
  CHECK(parsed);
}

TEST_CASE("where the errors lie is drawn cell by cell", "[html]") {
  const std::string page = html_report(sample_certificate());
  for (const char* colour : {"--e1", "--e2", "--e3", "--e4", "--e5"}) {
    INFO(colour);
    CHECK(count_of(page, std::string("<path fill=\"var(") + colour + ")") == 1);
  }
  CHECK_THAT(page, Contains("lines between the schedule's tiles of 2"));
  CHECK_THAT(
      page,
      Contains("largest |result \u2212 exact| over its bound in each cell; O of batch 0, head 1: "
               "4 seqlen_q down, 2 head_dim_v across"));
}

TEST_CASE("what is no certificate is refused", "[html]") {
  nlohmann::json odd = sample_certificate();
  odd["kernels"][0].erase("worst");
  CHECK_THROWS_AS(html_report(odd), InvalidProblem);
  CHECK_THROWS_AS(html_report(nlohmann::json::array()), InvalidProblem);
}

TEST_CASE("numbers are readable", "[html]") {
  CHECK(readable(0) == "0");
  CHECK(readable(999) == "999");
  CHECK(readable(1234567) == "1\u2009234\u2009567");
  CHECK(readable(-1000) == "-1\u2009000");
  CHECK(readable(0.12345) == "0.123");
  CHECK(coordinate(1.5) == "1.5");
  CHECK(coordinate(2) == "2");
  CHECK(coordinate(20) == "20");
  CHECK(coordinate(0.125) == "0.12");
}

}  // namespace
}  // namespace attest::certify
