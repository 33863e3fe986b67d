#include "certify/report/junit.hpp"

#include <pugixml.hpp>

#include "certify/report/testing/sample_certificate.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

pugi::xml_node suite_of(const pugi::xml_document& xml, const char* kernel) {
  return xml.child("testsuites").find_child_by_attribute("testsuite", "name", kernel);
}

pugi::xml_node test_of(const pugi::xml_node& suite, const char* name) {
  return suite.find_child_by_attribute("testcase", "name", name);
}

TEST_CASE("laws become test cases, what counted nowhere is skipped", "[junit]") {
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(sample_certificate()).c_str()));
  const pugi::xml_node good = suite_of(xml, "cpu/good");
  REQUIRE(good);
  CHECK(good.attribute("tests").as_int() == 4);
  CHECK(good.attribute("failures").as_int() == 0);
  CHECK(good.attribute("skipped").as_int() == 1);
  const pugi::xml_node ran = good.first_child().first_child();
  CHECK(std::string(ran.attribute("name").value()) == "ran");
  CHECK(std::string(ran.attribute("value").value()) == "emulated on the <host>");
  CHECK(std::string(good.attribute("time").value()) == "1.250");
  CHECK_FALSE(test_of(good, "reference_forward").first_child());
  CHECK(std::string(test_of(good, "one_hot_probe").child("skipped").attribute("message").value()) ==
        "no case counted: 4 vacuous, 2 unsupported");

  const pugi::xml_node broken = suite_of(xml, "./<b>.so:x");
  REQUIRE(broken);
  const pugi::xml_node failure = test_of(broken, "reference_forward").child("failure");
  REQUIRE(failure);
  CHECK(std::string(failure.attribute("message").value()) ==
        "O[batch=0] is <nan>, \"exact\" 1\\x1b[31m");
  CHECK_THAT(failure.child_value(), Catch::Contains(kSampleReproduce));
  CHECK_THAT(failure.child_value(), Catch::Contains("equals the result with top-left causal"));

  const pugi::xml_node partial = suite_of(xml, "cpu/partial");
  CHECK(std::string(test_of(partial, "complete").child("failure").attribute("type").value()) ==
        "incomplete");
  const pugi::xml_node all = xml.child("testsuites");
  CHECK(all.attribute("tests").as_int() == 12);
  CHECK(all.attribute("failures").as_int() == 2);
  CHECK(all.attribute("skipped").as_int() == 3);
}

TEST_CASE("beside a finding what was not judged fails", "[junit]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& kernel = certificate["kernels"][1];
  kernel["incomplete"] = {"the problem sq=9 was not judged: refused", "claimed, never exercised"};
  const auto complete = [&] {
    pugi::xml_document xml;
    REQUIRE(xml.load_string(junit_report(certificate).c_str()));
    return std::string(test_of(suite_of(xml, "./<b>.so:x"), "complete").first_child().name());
  };
  CHECK(complete() == "skipped");
  kernel["not_judged"] = {"the problem sq=9 was not judged: refused"};
  CHECK(complete() == "failure");
}

TEST_CASE("the sizes covered are a property", "[junit]") {
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(sample_certificate()).c_str()));
  const pugi::xml_node properties = suite_of(xml, "./<b>.so:x").child("properties");
  const auto sizes = properties.find_child_by_attribute("name", "sizes covered");
  CHECK_THAT(sizes.attribute("value").value(),
             Catch::StartsWith("causal: seqlen_q <= 2211 (by sample; whole <= 40), "));
  CHECK(properties.find_child_by_attribute("name", "ran"));  // one list of all properties
}

TEST_CASE("the content of a file is a property", "[junit]") {
  nlohmann::json certificate = sample_certificate();
  certificate["kernels"][1]["library_sha256"] = "1f2e";
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(certificate).c_str()));
  const auto content = [&](const char* kernel) {
    return suite_of(xml, kernel)
        .child("properties")
        .find_child_by_attribute("name", "SHA-256 of the file");
  };
  CHECK(std::string(content("./<b>.so:x").attribute("value").value()) == "1f2e");
  CHECK_FALSE(content("cpu/good"));  // a kernel of the program itself
}

TEST_CASE("a law that is folded into a finding fails as that", "[junit]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& broken = certificate["kernels"][1];
  broken["laws"]["one_hot_probe"]["failed"] = 1;
  broken["findings"][0]["also"] = {"one_hot_probe"};
  broken["findings"][0]["hints"] = {"would pass with numerics.p_cast = bf16"};
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(certificate).c_str()));
  const pugi::xml_node failure =
      test_of(suite_of(xml, "./<b>.so:x"), "one_hot_probe").child("failure");
  CHECK_THAT(failure.attribute("message").value(), Catch::StartsWith("as reference_forward: O["));
  CHECK_THAT(failure.child_value(), Catch::Contains("also fails: one_hot_probe"));
  CHECK_THAT(failure.child_value(), Catch::Contains("would pass with numerics.p_cast = bf16"));
}

TEST_CASE("nothing fails where all that was found is known", "[junit]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& broken = certificate["kernels"][1];
  broken["findings"][0]["known"] = true;
  broken["incomplete"] = {"claimed, never exercised: gqa"};
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(certificate).c_str()));
  const pugi::xml_node suite = suite_of(xml, "./<b>.so:x");
  CHECK(suite.attribute("failures").as_int() == 0);
  CHECK(std::string(test_of(suite, "complete").child("skipped").attribute("message").value()) ==
        "claimed, never exercised: gqa");
}

TEST_CASE("a law that fails beside its known failure is not skipped", "[junit]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& findings = certificate["kernels"][1]["findings"];
  findings.push_back(findings[0]);
  findings[0]["known"] = true;
  findings[1]["verdict"] = "crashed";
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(certificate).c_str()));
  const pugi::xml_node suite = suite_of(xml, "./<b>.so:x");
  CHECK(suite.attribute("errors").as_int() == 1);
  CHECK_FALSE(test_of(suite, "reference_forward").child("skipped"));
}

TEST_CASE("crashes are errors, violated I/O and repeated faults fail", "[junit]") {
  nlohmann::json certificate = sample_certificate();
  nlohmann::json& broken = certificate["kernels"][1];
  broken["verdict"] = "crashed";
  broken["findings"][0]["verdict"] = "crashed";
  broken["laws"]["one_hot_probe"]["failed"] = 1;
  broken["io"]["violations"] = {"3 words where 2 are the closed form"};
  pugi::xml_document xml;
  REQUIRE(xml.load_string(junit_report(certificate).c_str()));
  const pugi::xml_node suite = suite_of(xml, "./<b>.so:x");
  CHECK(test_of(suite, "reference_forward").child("error"));
  CHECK(test_of(suite, "one_hot_probe").child("error"));
  CHECK(test_of(suite, "io").child("failure"));
  CHECK(suite.attribute("errors").as_int() == 2);
  CHECK(suite.attribute("failures").as_int() == 1);
  CHECK_THROWS_AS(junit_report(nlohmann::json::object()), InvalidProblem);
}

}  // namespace
}  // namespace attest::certify
