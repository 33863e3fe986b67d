#include "certify/report/comparison.hpp"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>

#include "certify/report/testing/sample_certificate.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using nlohmann::json;

// "kind kernel: what" of every change.
std::vector<std::string> lines(const json& before, const json& after) {
  constexpr const char* kWords[] = {"regression", "improvement", "note"};
  std::vector<std::string> all;
  for (const Change& change : compare_certificates(before, after)) {
    all.push_back(std::string(kWords[static_cast<std::size_t>(change.kind)]) + " " + change.kernel +
                  ": " + change.what +
                  (change.reproduce.empty() ? "" : "\n    reproduce: " + change.reproduce));
  }
  return all;
}

TEST_CASE("equal certificates have no difference", "[comparison]") {
  json later = sample_certificate();
  later["timings"] = {{"seconds", {{"cpu/good", 99.0}}}};
  CHECK(lines(sample_certificate(), later).empty());
  CHECK(exit_code(compare_certificates(sample_certificate(), later)) == 0);
}

TEST_CASE("another file is told of", "[comparison]") {
  json before = sample_certificate(), after = sample_certificate();
  before["kernels"][0]["library_sha256"] = "1f2e";
  CHECK(lines(before, after).empty());  // older certificates do not say
  after["kernels"][0]["library_sha256"] = "1f2e";
  CHECK(lines(before, after).empty());
  after["kernels"][0]["library_sha256"] = "3a4b";
  REQUIRE(lines(before, after).size() == 1);
  CHECK(lines(before, after)[0] == "note : the file of cpu/good has other content");
}

TEST_CASE("a contract that allows more is a regression", "[comparison]") {
  json before = sample_certificate(), after = sample_certificate();
  json &was = before["kernels"][0], &is = after["kernels"][0];
  is["contract"] = "p_cast=bf16";
  CHECK(lines(before, after).empty());  // older certificates do not say
  was["contract"] = "";
  was["description"]["numerics"]["p_roundoff"]["bf16"] = 0.0;
  REQUIRE(lines(before, after).size() == 1);
  CHECK(
      lines(before, after)[0] ==
      "regression cpu/good: declares plain float32 -> p_cast=bf16, which may allow larger errors");
  REQUIRE(lines(after, before).size() == 1);
  CHECK(lines(after, before)[0] ==
        "improvement cpu/good: declares p_cast=bf16 -> plain float32, which allows smaller errors "
        "alone");
  was["description"]["numerics"] = is["description"]["numerics"];
  CHECK(lines(before, after)[0] == "note : cpu/good declares plain float32 -> p_cast=bf16");
  // A depth that is declared no more, an exp(0) that is not 1, another accumulation.
  const auto changed = [&](const char* field, const json& from, const json& to) {
    was["description"]["numerics"][field] = from;
    is["description"]["numerics"][field] = to;
    CHECK_THAT(lines(before, after)[0], Catch::StartsWith("regression"));
    is["description"]["numerics"][field] = from;
  };
  changed("summation_depth", 70, 0);
  changed("exp_zero_is_one", true, false);
  changed("accumulation", "nearest", "fused_blocks");
}

TEST_CASE("refused checks are counted among equally many", "[comparison]") {
  json before = sample_certificate(), after = sample_certificate();
  const auto refused = [](json& certificate, int checks, int made) {
    json& kernel = certificate["kernels"][0];
    kernel["checks"]["made"] = made;
    kernel["coverage"]["refused"] = {{{"message", "no"}, {"checks", checks}, {"example", "line"}}};
  };
  refused(before, 37, 500);
  refused(after, 54, 500);
  CHECK(lines(before, after).size() == 1);
  refused(after, 54, 900);  // laws that ended at a failure go on
  CHECK(lines(before, after).empty());
}

TEST_CASE("another library that a file is linked with is told of", "[comparison]") {
  json before = sample_certificate(), after = sample_certificate();
  const auto linked_with = [](json& certificate, const char* file, const char* sha256) {
    certificate["kernels"][0]["needed"] = {{{"file", file}, {"sha256", sha256}}};
  };
  linked_with(before, "/opt/libhelp.so", "1f2e");
  CHECK(lines(before, after).empty());  // older certificates do not say
  linked_with(after, "/opt/libhelp.so", "1f2e");
  CHECK(lines(before, after).empty());
  linked_with(after, "/opt/libhelp.so", "3a4b");
  REQUIRE(lines(before, after).size() == 1);
  CHECK(lines(before, after)[0] ==
        "note : /opt/libhelp.so, which cpu/good is linked with, has other content");
}

TEST_CASE("every regression is an improvement the other way round", "[comparison]") {
  const auto differs = [](const std::function<void(json&)>& change, const std::string& worse,
                          const std::string& better) {
    json after = sample_certificate();
    change(after["kernels"][0]);
    INFO(worse);
    const auto forward = lines(sample_certificate(), after);
    REQUIRE(forward.size() == 1);
    CHECK(forward[0] == "regression cpu/good: " + worse);
    CHECK(exit_code(compare_certificates(sample_certificate(), after)) == 1);
    if (better.empty()) return;
    const auto backward = lines(after, sample_certificate());
    REQUIRE(backward.size() == 1);
    CHECK(backward[0] == "improvement cpu/good: " + better);
    CHECK(exit_code(compare_certificates(after, sample_certificate())) == 0);
  };
  differs([](json& k) { k["verdict"] = "incomplete"; }, "verdict certified -> incomplete",
          "verdict incomplete -> certified");
  differs([](json& k) { k["verdict"] = "crashed"; }, "verdict certified -> crashed",
          "verdict crashed -> certified");
  differs([](json& k) { k["laws"]["one_hot_probe"]["failed"] = 1; }, "law one_hot_probe fails now",
          "law one_hot_probe holds now");
  differs([](json& k) { k["laws"]["reference_forward"]["passed"] = 0; },
          "law reference_forward counts on no case now", "");
  differs([](json& k) { k["laws"].erase("one_hot_probe"); },
          "law one_hot_probe is not checked any more", "");
  differs([](json& k) { k["description"]["features"] = {"gqa"}; }, "no longer claims window",
          "now claims window");
  differs(
      [](json& k) {
        k["coverage"]["not_exercised"] = {"gqa", "window"};
      },
      "no longer exercises the claim gqa", "now exercises the claim gqa");
  differs([](json& k) { k["coverage"]["refused"] = {"sq=9"}; },
          "no longer accepts what it claims: sq=9", "now accepts what it claims: sq=9");
  const auto refuses = [](int checks) {
    return [checks](json& k) {
      k["coverage"]["refused"] = {{{"message", "no"}, {"checks", checks}, {"example", "line"}}};
    };
  };
  differs(refuses(2), "no longer accepts what it claims: no", "now accepts what it claims: no");
  json twice = sample_certificate(), thrice = sample_certificate();
  refuses(2)(twice["kernels"][0]);
  refuses(3)(thrice["kernels"][0]);
  CHECK(lines(twice, thrice) ==
        std::vector<std::string>{"regression cpu/good: no in 2 -> 3 checks"});
  differs([](json& k) { k["io"]["table"][0]["counted"]["moved"]["words"] = 3001; },
          "words moved 3000 -> 3001 for sq=64,d=8 (forward)",
          "words moved 3001 -> 3000 for sq=64,d=8 (forward)");
  const auto by_code = [](int words) {
    return [words](json& k) { k["io"]["table"][0]["of_code"] = {{"moved", words}}; };
  };
  json before = sample_certificate(), after = sample_certificate();
  by_code(2500)(before["kernels"][0]);
  by_code(2600)(after["kernels"][0]);
  CHECK(lines(before, after) ==
        std::vector<std::string>{
            "regression cpu/good: words moved 2500 -> 2600 for sq=64,d=8 (forward)"});
  CHECK(lines(before, sample_certificate()).empty());  // the schedule's, where one does not count
  differs([](json& k) { k["io"] = nullptr; }, "its words are not counted any more",
          "its words are counted now");
  differs([](json& k) { k["io"]["violations"] = {"too many"}; }, "I/O violated: too many", "");
}

TEST_CASE("regressions come first, notes last", "[comparison]") {
  json after = sample_certificate();
  after["seed"] = 2;
  after["kernels"][0]["worst"]["O"]["error_over_bound"] = 0.9;
  after["kernels"][1]["verdict"] = "certified";
  after["kernels"][1]["laws"]["reference_forward"]["failed"] = 0;
  after["kernels"][1]["findings"] = json::array();
  after["kernels"].erase(2);
  after["kernels"].push_back(sample_kernel("cpu/new", "certified"));
  const auto all = lines(sample_certificate(), after);
  const std::vector<std::string> wanted{
      "regression cpu/partial: is not in the second certificate",
      "improvement ./<b>.so:x: verdict refused -> certified",
      "improvement ./<b>.so:x: law reference_forward holds now",
      "note : seed 1 -> 2: the cases differ",
      "note cpu/good: worst error over bound of O: 0.420 -> 0.900",
      "note cpu/new: is not in the first certificate"};
  CHECK(all == wanted);
  const json object = comparison_json(compare_certificates(sample_certificate(), after));
  CHECK(object.at("schema") == "attest-comparison-1");
  CHECK(object.at("regressions").size() == 1);
  CHECK(object.at("improvements").size() == 2);
  CHECK(object.at("notes").size() == 3);
  CHECK(object.at("exit_code") == 1);
}

TEST_CASE("a law that fails now says how to see it", "[comparison]") {
  json before = sample_certificate();
  before["kernels"][1]["laws"]["reference_forward"]["failed"] = 0;
  before["kernels"][1]["findings"] = json::array();
  const auto all = lines(before, sample_certificate());
  REQUIRE(all.size() == 1);
  CHECK(all[0] == std::string("regression ./<b>.so:x: law reference_forward fails now\n") +
                      "    reproduce: " + kSampleReproduce);
  json after = sample_certificate();
  json& kernel = after["kernels"][1];
  kernel["findings"][0]["also"] = {"ones", "two_keys"};
  for (const char* law : {"ones", "two_keys"}) {
    kernel["laws"][law] = kernel["laws"]["reference_forward"];
    before["kernels"][1]["laws"][law] = before["kernels"][1]["laws"]["reference_forward"];
  }
  const auto folded = lines(before, after);
  REQUIRE(folded.size() == 1);
  CHECK_THAT(folded[0], Catch::Contains("reference_forward fails now; also fails: ones, two_keys"));
  before["kernels"][1]["laws"]["reference_forward"]["failed"] = 1;
  CHECK(lines(before, after).size() == 2);  // each, where the first is not new
  const json object = comparison_json(compare_certificates(before, after));
  const json& ones = object.at("regressions").at(0);
  CHECK(ones.at("what") == "law ones fails now, of the cause of reference_forward");
  CHECK_THAT(ones.at("reproduce"), Catch::Contains(" --law ones "));
}

TEST_CASE("smaller sizes covered are a regression", "[comparison]") {
  json after = sample_certificate();
  after["kernels"][1]["coverage"]["sizes"]["causal"]["sampled"] = nullptr;
  const auto fewer = lines(sample_certificate(), after);
  REQUIRE(fewer.size() == 1);
  CHECK(fewer[0] == "regression ./<b>.so:x: covers seqlen_q <= 40 with causal, before 2211");
  CHECK(lines(after, sample_certificate()).front().rfind("improvement", 0) == 0);
  json nothing = after;
  nothing["kernels"][1]["coverage"]["sizes"]["causal"]["whole"] = nullptr;
  CHECK(lines(sample_certificate(), nothing) ==
        std::vector<std::string>{"regression ./<b>.so:x: no longer covers causal"});
  nothing["kernels"][1]["coverage"]["sizes"].erase("causal");
  CHECK(lines(sample_certificate(), nothing) ==
        std::vector<std::string>{"regression ./<b>.so:x: no longer covers causal"});
  CHECK(lines(nothing, sample_certificate()) ==
        std::vector<std::string>{"improvement ./<b>.so:x: now covers causal"});
  json newly = after, passed = sample_certificate();
  passed["kernels"][1]["verdict"] = "certified";
  const auto refused = lines(passed, newly);  // a law ends where it fails
  REQUIRE(refused.size() == 1);
  CHECK(refused[0] == "regression ./<b>.so:x: verdict certified -> refused");
  after["kernels"][1]["coverage"].erase("sizes");  // as older ones
  CHECK(lines(sample_certificate(), after).empty());
}

TEST_CASE("bad certificates are refused", "[comparison]") {
  const std::string path = "comparison_test.json";
  const auto refused = [&](const std::string& text, const std::string& why) {
    std::ofstream(path) << text;
    CHECK_THROWS_WITH(read_certificate(path), Catch::Contains(path) && Catch::Contains(why));
    CHECK_THROWS_AS(read_certificate(path), InvalidProblem);
  };
  refused("", "is not JSON");
  refused("{", "is not JSON");
  refused("[]", "its schema is null");
  std::string twice = sample_certificate().dump();
  twice.insert(twice.rfind('}'), R"(,"exit_code":0)");
  refused(twice, "has the member 'exit_code' twice in one object");
  refused(R"({"kernels": [{"a": {"b": 1}, "b": {"b": 1}, "a": 2}]})", "has the member 'a' twice");
  refused(sample_certificate().dump() + '\0', "holds a byte 0");
  refused(R"({"schema": "attest-count-1"})", "its schema is \"attest-count-1\"");
  std::ofstream(path) << sample_certificate();
  CHECK(read_certificate(path) == sample_certificate());
  std::remove(path.c_str());
  CHECK_THROWS_WITH(read_certificate(path), Catch::Contains("cannot be read"));
  CHECK_THROWS_WITH(read_certificate("."), Catch::Contains("cannot be read"));
  json odd = sample_certificate();
  odd["kernels"][0].erase("laws");
  CHECK_THROWS_AS(compare_certificates(sample_certificate(), odd), InvalidProblem);
}

TEST_CASE("a library in another folder is the same kernel", "[report]") {
  const nlohmann::json before = sample_certificate();
  nlohmann::json after = before;
  after["kernels"][1]["kernel"] = "/elsewhere/<b>.so:x";
  const auto changes = compare_certificates(before, after);
  REQUIRE(changes.size() == 1);
  CHECK(changes[0].kind == ChangeKind::note);
  CHECK_THAT(changes[0].what, Catch::Contains("is compared with ./<b>.so:x"));
  after["kernels"][1]["kernel"] = "/elsewhere/<b>.so:y";
  CHECK(exit_code(compare_certificates(before, after)) == 1);
}

}  // namespace
}  // namespace attest::certify
