#include "certify/findings/thread_race.hpp"

#include <atomic>

#include "certify/findings/shrunk_finding.hpp"
#include "certify/worker/conduct/fault.hpp"
#include "core/testing/catch.hpp"
#include "fixtures/register.hpp"

namespace attest::certify {
namespace {

using proptest::Case;

const attest_kernel& sound() { return fixtures::defective_kernel(fixtures::Defect::none); }

// With several threads every so-many-th call loses an addition, as a race does now and then.
template <int every>
attest_status racing(const void*, const attest_forward_args* args) {
  static std::atomic<int> calls{0};
  const attest_status status = sound().forward(sound().self, args);
  if (args->problem->num_threads > 1 && calls++ % every == 0) {
    const TensorView O = view_of(*args->O, "O", {"b", "i", "h", "c"});
    O.set(O(0, 0, 0, 0) + 1, 0, 0, 0, 0);
  }
  return status;
}

attest_kernel kernel_of(attest_status (*forward)(const void*, const attest_forward_args*)) {
  attest_kernel kernel = sound();
  kernel.forward = forward;
  return kernel;
}

std::string words_of(const attest_kernel& kernel, std::int32_t threads) {
  const Case c{Problem::parse("sq=2,sk=3,d=2"), proptest::Values::normal, 1, threads};
  return race_of(
             proptest::find_law("reference_forward"), kernel, c,
             [](const proptest::LawResult& result) { return result.verdict == Verdict::violated; })
      .words;
}

TEST_CASE("a race fails in some repetitions, with several threads alone", "[race]") {
  CHECK(words_of(kernel_of(racing<4>), 3) ==
        "race: fails in 8 of 32 repetitions with 3 threads and in none with one: ");
  CHECK(words_of(kernel_of(racing<4>), 1).empty());
  CHECK(words_of(kernel_of(racing<1>), 2) ==
        "threads: fails in every one of 32 repetitions with 2 threads and in none with one: ");
  CHECK(words_of(fixtures::defective_kernel(fixtures::Defect::lse_shifted), 2).empty());
  CHECK(words_of(sound(), 2).empty());
}

// Every so-many-th call is wrong, whatever its threads.
template <int every>
attest_status counting(const void*, const attest_forward_args* args) {
  static int calls = 0;
  const attest_status status = sound().forward(sound().self, args);
  if (++calls % every == 0) {
    const TensorView O = view_of(*args->O, "O", {"b", "i", "h", "c"});
    O.set(O(0, 0, 0, 0) + 1, 0, 0, 0, 0);
  }
  return status;
}

TEST_CASE("a failure that comes of the number of calls is no race", "[race]") {
  CHECK(words_of(kernel_of(counting<37>), 2).empty());
}

TEST_CASE("a fault keeps its kind whatever is said of threads and state", "[race]") {
  using worker::FaultKind;
  for (const char* circumstance :
       {"", "race: fails in 3 of 32 repetitions with 2 threads and in none with one: ",
        "threads: fails in every one of 32 repetitions with 2 threads and in none with one: ",
        "state: fails after another check in one process, and not without: "}) {
    INFO(circumstance);
    CHECK(worker::kind_in_finding(std::string(circumstance) + "abort: in forward") ==
          FaultKind::abort);
    CHECK_FALSE(worker::kind_in_finding(std::string(circumstance) + "O[batch=0] is 1"));
  }
}

TEST_CASE("a finding of a race says so", "[race]") {
  const attest_kernel kernel = kernel_of(racing<5>);
  Finding finding;
  finding.law = "reference_forward";
  finding.found = {Problem::parse("sq=9,sk=12,d=4"), proptest::Values::normal, 1, 2};
  finding.message = "outside the proved bound";
  shrink_finding(kernel, finding, {}, [] { return false; });
  CHECK(finding.shrunk.threads == 2);
  CHECK(finding.checks >= 5);  // so many that one of them fails
  CHECK_THAT(finding.message, Catch::StartsWith("race: fails in ") &&
                                  Catch::Contains(" of 32 repetitions with 2 threads"));
}

}  // namespace
}  // namespace attest::certify
