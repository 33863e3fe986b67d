#include "certify/findings/state_finding.hpp"

#include "certify/findings/case_text.hpp"
#include "certify/findings/shrunk_finding.hpp"
#include "certify/report/suspicion.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/error.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify {
namespace {

using proptest::Case;
using worker::testing::kernel_called;
using worker::testing::limits;
using worker::testing::plugin;

Case case_of(const std::string& problem, std::uint64_t seed = 1) {
  return {Problem::parse(problem), proptest::Values::normal, seed, 1};
}

// Checks of a process, in which the last but one meets the plan that the second made.
std::vector<Case> sequence() {
  return {case_of("sq=3,sk=4,d=2"), case_of("b=2,sq=7,sk=9,d=6,scale=0.1"),
          case_of("sq=5,d=2"),      case_of("sq=1,sk=8,d=3"),
          case_of("sq=2,sk=2,d=2"), case_of("b=2,sq=7,sk=9,d=6,scale=2"),
          case_of("sq=4,d=4")};
}

TEST_CASE("a plan kept by head dimension is found with the call that made it", "[state]") {
  const auto kernels = worker::isolate_library(plugin("failing"), limits());
  const attest_kernel& kernel = kernel_called(kernels, "keeps_plan");
  const proptest::Law& law = proptest::find_law("reference_forward");
  const Case failing = sequence()[5];
  REQUIRE(check_after(law, kernel, {}, failing).verdict == Verdict::passed);
  Finding finding;
  finding.law = law.name;
  finding.verdict = Verdict::violated;
  finding.found = failing;
  finding.message = "outside the proved bound";
  shrink_finding(kernel, finding, sequence(), [] { return false; });
  INFO(finding.message);
  CHECK_THAT(finding.message, Catch::StartsWith("state: fails after another check in one process"));
  REQUIRE(finding.after.size() == 1);
  // As small as two calls of one head dimension with another scale can be.
  CHECK(finding.shrunk.problem.batch == 1);
  CHECK(finding.shrunk.problem.seqlen_q == 1);
  CHECK(finding.shrunk.problem.seqlen_k <= 2);
  CHECK(finding.after.front().problem.head_dim_qk == finding.shrunk.problem.head_dim_qk);
  CHECK(finding.after.front().problem.batch == 1);
  CHECK(finding.after.front().problem.scale() != finding.shrunk.problem.scale());
  CHECK(check_after(law, kernel, finding.after, finding.shrunk).verdict == Verdict::violated);
  CHECK(check_after(law, kernel, {}, finding.shrunk).verdict == Verdict::passed);
  CHECK_THAT(reproduce_line("K", finding), Catch::Contains(" --after 'b=1,hq=1,"));
}

TEST_CASE("a failure by chance is no state, and has a message", "[state]") {
  const auto kernels = worker::isolate_library(plugin("misbehaving"), limits());
  const attest_kernel& kernel = kernel_called(kernels, "fail_by_chance");
  Finding finding;
  finding.law = "reference_forward";
  finding.verdict = Verdict::violated;
  finding.found = case_of("sq=2,sk=2,d=2");
  finding.message = "outside the proved bound";
  shrink_finding(kernel, finding, {finding.found}, [] { return false; });
  INFO(finding.message);
  CHECK_THAT(finding.message, Catch::StartsWith("chance: fails at check ") &&
                                  Catch::Contains(": outside the proved bound"));
  CHECK(finding.after.empty());
  const auto again =
      check_repeatedly(proptest::find_law(finding.law), kernel, {}, finding.shrunk, finding.checks);
  CHECK(again.result.verdict == Verdict::violated);
}

TEST_CASE("an address computed wrongly is no memory that was kept", "[state]") {
  const auto failing = worker::isolate_library(plugin("failing"), limits());
  const attest_kernel& narrow = kernel_called(failing, "narrow_strides");
  const proptest::Law& law = proptest::find_law("reference_forward");
  const Case far = case_of("b=3,sq=2,d=4,strides=huge"), before = case_of("sq=3,d=4,strides=huge");
  worker::restart(narrow);
  REQUIRE(worker::check(law, narrow, before).verdict == Verdict::passed);
  Finding finding;
  finding.law = law.name;
  finding.found = far;
  finding.message = worker::check(law, narrow, far).message;
  REQUIRE_THAT(finding.message, Catch::StartsWith("stale_memory: "));
  CHECK(suspicions_of(narrow, far, far, finding.message).empty());
  // As the line says that runs it again.
  shrink_finding(narrow, finding, {before, far}, [] { return false; });
  CHECK_THAT(finding.message, Catch::StartsWith("crash: segmentation fault"));
  CHECK(finding.verdict == Verdict::crashed);
  CHECK(check_after(law, narrow, finding.after, finding.shrunk).message.substr(0, 6) == "crash:");

  const auto misbehaving = worker::isolate_library(plugin("misbehaving"), limits());
  const attest_kernel& keeps = kernel_called(misbehaving, "keep_pointer");
  const Case small = worker::testing::small_case();
  const auto seen = suspicions_of(keeps, small, small,
                                  "stale_memory: memory of an earlier call was read in forward (a "
                                  "pointer that was kept, or an address computed wrongly)");
  REQUIRE(seen.size() == 1);
  CHECK(seen.front().name == "earlier_memory");
}

TEST_CASE("what never fails again has no history", "[state]") {
  const auto kernels = worker::isolate_library(plugin("misbehaving"), limits());
  const auto violated = [](const proptest::LawResult& result) {
    return result.verdict == Verdict::violated;
  };
  const proptest::Law& law = proptest::find_law("reference_forward");
  CHECK_FALSE(shortest_history(law, kernel_called(kernels, "nothing"), sequence(), sequence()[5],
                               violated));
}

TEST_CASE("cases beside a case are spelled", "[state]") {
  const Case beside = case_of("sq=2,d=1");
  Case c = case_of("sq=3,d=1,mask=causal_tl");
  const auto same = [&] {
    const Case read = parse_case_text(case_text(c, beside), beside);
    CHECK(read.problem.to_string() == c.problem.to_string());
    CHECK((read.values == c.values && read.seed == c.seed && read.threads == c.threads));
  };
  CHECK(case_text(c, beside) == c.problem.to_string());
  same();
  c.values = proptest::Values::x4;
  c.seed = 18446744073709551615u;
  c.threads = 7;
  CHECK(case_text(c, beside) ==
        c.problem.to_string() + " values=x4 seed=18446744073709551615 threads=7");
  same();
  for (const char* wrong :
       {"sq=2 seed=x", "sq=2 threads=0", "sq=2 values=none", "sq=2 sed=1", ""}) {
    INFO(wrong);
    CHECK_THROWS_AS(parse_case_text(wrong, beside), InvalidProblem);
  }
}

}  // namespace
}  // namespace attest::certify
