#include "certify/history/known_failures.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

#include "certify/files.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/defects/defect.hpp"

namespace attest::certify {
namespace {

struct File {
  explicit File(const std::string& text) { write_file(path, text); }
  ~File() { std::remove(path.c_str()); }
  std::string path = "known_failures_test.txt";
};

std::vector<KnownFailure> known(const std::string& text) {
  const File file(text);
  return read_known_failures(file.path);
}

// A kernel that fails `ones` on wrong results and `two_keys` of the same cause.
CampaignResult failing(const std::string& message = "O is 1, exact 2") {
  CampaignResult result;
  result.kernel = "./build/lib.so:x";
  result.verdict = Verdict::violated;
  result.laws["ones"].failed = 1;
  result.laws["reference_forward"].passed = 3;
  Finding finding;
  finding.law = "ones";
  finding.verdict = Verdict::violated;
  finding.message = message;
  finding.also = {"mask_forms"};
  finding.outputs = {"O"};
  result.laws["mask_forms"].failed = 1;
  result.laws["mask_forms"].wrong = {{"O", {}}};
  result.findings.push_back(finding);
  return result;
}

TEST_CASE("known failures are lines of a kernel, a law and perhaps a fault", "[known]") {
  const auto list =
      known("# all\n\n./a b/lib.so:x  ones   # why\r\ncpu/x reference_forward hang\n");
  REQUIRE(list.size() == 2);
  CHECK(list[0].kernel == "./a b/lib.so:x");
  CHECK(list[0].law == "ones");
  CHECK(list[0].kind.empty());
  CHECK(list[1].kind == "hang");
  CHECK(list[1].where == "known_failures_test.txt:4");
  CHECK(known("\xef\xbb\xbfx ones\n")[0].kernel == "x");
  const auto signs = known("./c#/lib#1.so:x ones\t# why # and more\n  # ./lib.so:x ones\n");
  REQUIRE(signs.size() == 1);
  CHECK(signs[0].kernel == "./c#/lib#1.so:x");
  CHECK(signs[0].law == "ones");
  CHECK_THROWS_WITH(known("x ones#why\n"), Catch::Contains("did you mean 'ones'?"));
  CHECK_THROWS_WITH(known("x ones\nx one\n"), Catch::Contains("known_failures_test.txt:2:"));
  CHECK_THROWS_WITH(known("ones\n"), Catch::Contains("is not KERNEL LAW"));
  CHECK_THROWS_WITH(known("x crash\n"), Catch::Contains("law"));
  CHECK_THROWS_WITH(known("x ones crsh\n"), Catch::Contains("the kind of a fault: crash, "));
  CHECK_THROWS_WITH(read_known_failures("absent.txt"), Catch::Contains("No such file"));
}

TEST_CASE("a known failure hides nothing that was not judged", "[known]") {
  std::vector<CampaignResult> results{failing()};
  mark_known(known("lib.so:x ones\n"), results);
  CHECK(exit_code(results) == 0);
  results[0].refused.push_back({"refused although claimed", 3, "sq=7"});
  CHECK(exit_code(results) == 3);
  results[0].refused.clear();
  results[0].unjudged["sq=3000,d=16"] = "it was refused";
  CHECK(not_judged(results[0]) ==
        std::vector<std::string>{"the problem sq=3000,d=16 was not judged: it was refused"});
  CHECK(exit_code(results) == 3);
}

TEST_CASE("an entry is definite: it names a kernel, and one", "[known]") {
  const std::vector<std::string> kernels{"./a/lib.so:x", "./a/lib.so:y", "cpu/flash2"};
  CHECK_NOTHROW(require_definite(
      known("lib.so:x ones\n./b/lib.so:y ones\ncpu/flash2 ones\nother.so ones\n"), kernels));
  CHECK_NOTHROW(require_definite(known("lib.so:x ones\n"), {"lib.so:x", "lib.so:x"}));
  CHECK_THROWS_WITH(
      require_definite(known("./lib.so ones\n"), kernels),
      "known_failures_test.txt:1: './lib.so' is a file; write the kernel, as in './lib.so:x ones'");
  CHECK_THROWS_WITH(
      require_definite(known("\n./a/lib.so:x ones\n"), {"./a/lib.so:x", "./b/lib.so:x"}),
      Catch::StartsWith(
          "known_failures_test.txt:2: './a/lib.so:x' is both './a/lib.so:x' and './b/lib.so:x'"));
}

TEST_CASE("a campaign that ended early does not tell laws of a known cause apart", "[known]") {
  std::vector<CampaignResult> results{failing()};
  results[0].interrupted = true;
  results[0].findings.push_back(results[0].findings[0]);
  results[0].findings[1].law = "two_keys";
  mark_known(known("lib.so:x ones\n"), results);
  CHECK(results[0].findings[0].known);
  CHECK_FALSE(results[0].findings[0].undecided);
  CHECK(results[0].findings[1].undecided);
  CHECK(exit_code(results) == 3);
  mark_known(known("lib.so:y ones\n"), results);  // of another kernel
  CHECK(exit_code(results) == 1);
  results[0].findings[1].verdict = results[0].verdict = Verdict::crashed;
  mark_known(known("lib.so:x ones\n"), results);
  CHECK(exit_code(results) == 4);
  results[0].findings[1].verdict = results[0].verdict = Verdict::violated;
  results[0].interrupted = false;
  mark_known(known("lib.so:x ones\n"), results);
  CHECK(exit_code(results) == 1);
}

TEST_CASE("a listed law does not cover a finding that it fails with", "[known]") {
  std::vector<CampaignResult> results{failing()};  // ones, with mask_edges
  results[0].findings[0].also = {"reference_backward"};
  const auto outcomes = mark_known(known("lib.so:x reference_backward\n"), results);
  CHECK_FALSE(results[0].findings[0].known);
  CHECK(outcomes[0].expected == Expected::occurs);
  CHECK(exit_code(results) == 1);
  CHECK(outcomes[0].part_of == "ones");  // the law that the list needs
  CHECK(known_json(outcomes)[0].at("part_of") == "ones");
  const auto both = mark_known(known("lib.so:x reference_backward\nlib.so:x ones\n"), results);
  CHECK(both[0].part_of.empty());
  CHECK(known_json(both)[0].at("part_of").is_null());
  CHECK(exit_code(results) == 0);
  results[0].findings[0].message = "crash: signal 11";
  CHECK(mark_known(known("lib.so:x reference_backward crash\n"), results)[0].part_of ==
        "ones crash");
}

// A mistake in dQ makes neither O wrong nor two equal calls differ.
TEST_CASE("what fails with a listed finding, but not as it does, needs a line", "[known]") {
  const std::string line = "lib.so:x ones\n";
  std::vector<CampaignResult> results{failing()};
  const WrongCheck other{{Problem::parse("sq=3,d=2"), proptest::Values::normal, 5, 1},
                         "outside the proved bound: LSE[batch=0] is 1, exact 2"};
  results[0].laws["mask_forms"].wrong["LSE"] = other;
  mark_known(known(line), results);
  CHECK_FALSE(results[0].findings[0].known);
  CHECK(exit_code(results) == 1);
  const auto& hints = results[0].findings[0].evidence.hints;
  REQUIRE(hints.size() == 2);
  CHECK_THAT(hints[0],
             Catch::StartsWith("listed, but mask_forms finds more than it: outside the "
                               "proved bound: LSE[batch=0] is 1, exact 2; attest check") &&
                 Catch::Contains("sq=3,") && Catch::Contains("--law mask_forms --seed 5"));
  CHECK_THAT(hints[1], Catch::EndsWith("lacking in the list: ./build/lib.so:x mask_forms"));
  mark_known(known(line + "lib.so:x mask_forms\n"), results);
  CHECK(exit_code(results) == 0);
  results = {failing()};
  results[0].laws["mask_forms"].wrong_otherwise = other;  // its bits alone
  mark_known(known(line), results);
  CHECK(exit_code(results) == 1);
  // A law against the reference that meets the fault may meet another one of its kind.
  results = {failing("crash: signal 11")};
  mark_known(known("lib.so:x ones crash\n"), results);
  CHECK(exit_code(results) == 0);
  results[0].findings[0].also.emplace_back("reference_forward");
  mark_known(known("lib.so:x ones crash\n"), results);
  CHECK(exit_code(results) == 1);
  mark_known(known("lib.so:x ones crash\nlib.so:x reference_forward crash\n"), results);
  CHECK(exit_code(results) == 0);
}

TEST_CASE("a listed fault hides no results", "[known]") {
  attest_description description{};
  description.dtypes = 1U << ATTEST_F32;
  CampaignResult result = failing("printed: 3 bytes");
  result.claimed = {"a b"};
  result.findings[0].also.clear();
  result.laws.erase("mask_forms");
  result.laws["ones"].hidden = 1;
  // Its results were not judged: neither the claim nor the pair nor the law.
  CHECK(gaps_beside_failures(description, result) ==
        std::vector<std::string>{"claimed, never exercised: f32",
                                 "no case counted for the law ones",
                                 "never met together in 1 of 1 claimed pairs, first: a b"});
  std::vector<CampaignResult> results{result};
  mark_known(known("lib.so:x ones printed\n"), results);
  CHECK(exit_code(results) == 0);
  results[0].gaps_beside = gaps_beside_failures(description, results[0]);
  CHECK(exit_code(results) == 3);
  // Wrong results were judged, and a crash leaves none.
  results[0].laws["ones"].hidden = 0;
  results[0].failing = {"f32"};
  results[0].failing_pairs = {"a b"};
  results[0].gaps_beside = gaps_beside_failures(description, results[0]);
  CHECK(results[0].gaps_beside.empty());
  CHECK(exit_code(results) == 0);
  results[0].chosen_law = "ones";
  results[0].laws["ones"].hidden = 1;
  CHECK(gaps_beside_failures(description, results[0]) ==
        std::vector<std::string>{"no case counted for the law ones"});
}

attest_status shifted_rows(const void*, const attest_forward_args* args) {
  const attest_kernel& wrong = fixtures::defective_kernel(fixtures::Defect::mean_of_v);
  return wrong.forward(wrong.self, args);
}
attest_status halved_dv(const void*, const attest_backward_args* args) {
  const attest_kernel& wrong = fixtures::defective_kernel(fixtures::Defect::dv_halved);
  return wrong.backward(wrong.self, args);
}

TEST_CASE("a known mistake in backward excuses none in forward, nor the reverse", "[known]") {
  attest_kernel kernel = fixtures::defective_kernel(fixtures::Defect::none);
  kernel.description.max_head_dim = 16;
  kernel.description.name = "both";
  const auto code = [&](auto* forward, auto* backward, const std::string& lines) {
    attest_kernel one = kernel;
    if (forward != nullptr) one.forward = forward;
    if (backward != nullptr) one.backward = backward;
    const auto list = known(lines);
    CampaignOptions options;
    options.cases = 12;
    Surveillance surveillance;
    surveillance.expected = expected_kinds(list, "both");
    std::vector<CampaignResult> results{run_campaign(
        one, options, [](std::uint64_t, std::uint64_t) {}, surveillance)};
    mark_known(list, results);
    for (const Finding& finding : results[0].findings) {
      UNSCOPED_INFO(finding.law << " known " << finding.known);
      for (const std::string& hint : finding.evidence.hints) UNSCOPED_INFO(hint);
    }
    return exit_code(results);
  };
  attest_status (*const forward)(const void*, const attest_forward_args*) = shifted_rows;
  attest_status (*const backward)(const void*, const attest_backward_args*) = halved_dv;
  decltype(forward) no_forward = nullptr;
  decltype(backward) no_backward = nullptr;
  const std::string of_forward = "both reference_forward\n",
                    of_backward = "both reference_backward\n";
  CHECK(code(no_forward, backward, of_backward) == 3);  // so few cases certify nothing
  CHECK(code(forward, backward, of_backward) == 1);
  CHECK(code(forward, backward, of_forward) == 1);
  CHECK(code(forward, no_backward, of_backward) == 1);
}

TEST_CASE("a fault in a finding of state needs its kind", "[known]") {
  const std::string message =
      "state: fails after another check in one process, and not without: out_of_bounds: K: read";
  std::vector<CampaignResult> results{failing(message)};
  mark_known(known("lib.so:x ones\n"), results);
  CHECK_FALSE(results[0].findings[0].known);
  mark_known(known("lib.so:x ones out_of_bounds\n"), results);
  CHECK(results[0].findings[0].known);
}

TEST_CASE("a shard tells no cause apart", "[known]") {
  std::vector<CampaignResult> results{failing()};
  results[0].shard = {1, 2};
  mark_known(known("lib.so:x reference_forward\n"), results);
  CHECK(results[0].findings[0].undecided);
  CHECK(exit_code(results) == 3);
  // A listed fault makes no results of other calls wrong.
  mark_known(known("lib.so:x reference_forward printed\n"), results);
  CHECK_FALSE(results[0].findings[0].undecided);
  CHECK(exit_code(results) == 1);
}

TEST_CASE("a byte 0 in the list is refused", "[known]") {
  CHECK_THROWS_WITH(known(std::string("x ones\n\0", 8)), Catch::Contains(":2: holds a byte 0"));
}

TEST_CASE("a listed finding does not fail the run, and is no certificate", "[known]") {
  std::vector<CampaignResult> results{failing()};
  CHECK(exit_code(results) == 1);
  const auto outcomes = mark_known(known("lib.so:x ones\n"), results);
  CHECK(results[0].findings[0].known);
  CHECK(outcomes[0].expected == Expected::occurs);
  CHECK(exit_code(results) == 0);
  CHECK(outcome(results[0]) == "violated");
  CHECK(known_json(outcomes)[0].at("outcome") == "occurs");
  results[0].interrupted = true;
  CHECK(exit_code(results) == 3);
}

TEST_CASE("the kinds that a kernel is known to fail by are all those of its entries", "[known]") {
  using worker::FaultKind;
  const auto list = known("lib.so:x ones\nlib.so:x repeat hang\nlib.so:y ones crash\n");
  CHECK(expected_kinds(list, "./build/lib.so:x") == ExpectedKinds{std::nullopt, FaultKind::hang});
  CHECK(expected_kinds(list, "lib.so:y") == ExpectedKinds{FaultKind::crash});
  CHECK(expected_kinds(list, "lib.so:z").empty());
  CHECK(expected_kinds(known("x ones out_of_bounds\n"), "x") ==
        ExpectedKinds{FaultKind::out_of_bounds, FaultKind::stale_memory});
}

TEST_CASE("an entry is of a kernel in whatever folder", "[known]") {
  const auto list = known("./a/lib.so:x ones\n");
  CHECK(is_of_kernel(list[0], "./build/lib.so:x"));
  CHECK_FALSE(is_of_kernel(list[0], "./a/lib.so:y"));
  CHECK_FALSE(is_of_kernel(list[0], "./a/lib.so"));
  CHECK_FALSE(is_of_kernel(list[0], "x"));
}

TEST_CASE("another law, kernel or fault is not the listed one", "[known]") {
  for (const char* text :
       {"lib.so:x reference_forward\n", "lib.so:y ones\n", "lib.so:x ones crash\n"}) {
    std::vector<CampaignResult> results{failing()};
    mark_known(known(text), results);
    CHECK(exit_code(results) == 1);
  }
  std::vector<CampaignResult> results{failing("crash: signal 11")};
  mark_known(known("lib.so:x ones\n"), results);
  CHECK(exit_code(results) == 1);
  mark_known(known("lib.so:x ones crash\n"), results);
  CHECK(exit_code(results) == 0);
}

TEST_CASE("a crash that is listed gives no other finding its exit code", "[known]") {
  std::vector<CampaignResult> results{failing("crash: signal 11")};
  Finding wrong = failing().findings[0];
  wrong.law = "two_keys";
  results[0].findings[0].verdict = results[0].verdict = Verdict::crashed;
  results[0].findings.push_back(wrong);
  CHECK(exit_code(results) == 4);
  mark_known(known("lib.so:x ones crash\n"), results);
  CHECK(exit_code(results) == 1);
}

TEST_CASE("violated I/O and a second finding fail beside a known one", "[known]") {
  std::vector<CampaignResult> results{failing()};
  Finding other = results[0].findings[0];
  other.law = "reference_forward";
  other.also.clear();
  results[0].findings.push_back(other);
  mark_known(known("lib.so:x ones\n"), results);
  CHECK(exit_code(results) == 1);
  results[0].findings.pop_back();
  CHECK(exit_code(results) == 0);
  results[0].io.emplace();
  results[0].io->violations = {"too many words"};
  CHECK(exit_code(results) == 1);
}

TEST_CASE("what occurs no longer is told where it was looked for", "[known]") {
  const auto list = known("lib.so:x reference_forward\n");
  const auto found = [&](const CampaignResult& result) {
    std::vector<CampaignResult> results{result};
    return mark_known(list, results)[0].expected;
  };
  CampaignResult result = failing();
  CHECK(found(result) == Expected::gone);
  result.shard = {1, 2};
  CHECK(found(result) == Expected::not_looked_for);
  result.shard = {};
  result.interrupted = true;
  CHECK(found(result) == Expected::not_looked_for);
  result.interrupted = false;
  result.laws["reference_forward"].failed = 1;
  CHECK(found(result) == Expected::not_looked_for);
  result.laws.clear();
  CHECK(found(result) == Expected::not_looked_for);
  result.kernel = "cpu/other";
  CHECK(found(result) == Expected::not_looked_for);
}

}  // namespace
}  // namespace attest::certify
