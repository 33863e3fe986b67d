#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include "certify/worker/conduct/call_memory.hpp"
#include "certify/worker/conduct/diagnosis.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/process/sanitizers.hpp"
#include "certify/worker/testing/early_descriptor.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/registry.hpp"
#include "core/testing/catch.hpp"
#include "cpu/register.hpp"
#include "fixtures/defects/defect.hpp"
#include "fixtures/register.hpp"
#include "proptest/judge/buffer.hpp"
#include "proptest/judge/compare.hpp"
#include "proptest/judge/run.hpp"
#include "proptest/values/values.hpp"

namespace attest::certify::worker {
namespace {

using testing::kernel_called;
using testing::limits;
using testing::plugin;
using testing::small_case;

// O fills a page, so that its neighbours are guard pages.
proptest::Case page_case() {
  return {Problem::parse("sq=64,sk=5,d=16"), proptest::Values::normal, 1, 1};
}

struct Expected {
  const char* kernel;
  const char* text;  // the message begins with it
};

}  // namespace

TEST_CASE("every misbehaviour has its own finding") {
  for (const char* binds : {"OMP_PROC_BIND", "OMP_PLACES", "GOMP_CPU_AFFINITY", "KMP_AFFINITY"}) {
    unsetenv(binds);
  }
  Limits tight = limits();
  tight.timeout_seconds = 1;
  tight.memory_limit_bytes = std::uint64_t{200} << 20;
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), tight);
  const proptest::Law& law = proptest::find_law("reference_forward");
  std::vector<Expected> cases{
      {"crash", "crash: segmentation fault at the null pointer in forward"},
      {"abort", "abort: abort() in forward: assertion failed: on purpose"},
      {"exit", "exit: the process was ended with status 0 in forward"},
      {"hang", "hang: forward did not return within 1 s"},
      {"fork", "fork: a process was started in forward"},
      {"fork_and_return", "fork: a process was started in forward"},
      {"write_before", "out_of_bounds: O: written before its first element in forward"},
      {"write_after", "out_of_bounds: O: written past its last element in forward"},
      {"read_after", "out_of_bounds: O: read 257 bytes past its last element in forward"},
      {"overrun_workspace", "out_of_bounds: workspace: written past its last element in forward"},
      {"write_input", "input_written: Q was written in forward, at byte 0"},
      {"restore_input", "input_written: Q was written in forward, at byte 0"},
      {"write_arguments", "input_written: the argument structs was written in forward"},
      {"close_descriptors",
       "closed_descriptor: descriptors that it had not opened were closed (0, 1, 2, 3, 4, 5) in "
       "forward"},
      {"close_and_hang", "hang: forward did not return within 1 s"},
      {"change_rounding", "floating_point: rounding mode"},
      {"flush_denormals", "floating_point:"},
      {"change_locale", "locale: 'C' became 'C.UTF-8' in forward"},
      {"change_directory", "directory: '"},
      {"change_environment", "environment: variables were changed: MISBEHAVING in forward"},
      {"change_signal_handler",
       "signal_handler: what signal 2 (Interrupt) does was changed in forward"},
      {"print", "printed: 23 bytes, beginning with 'attention of 3 queries' in forward"},
      {"divide", "crash: signal 8 (Floating point exception) in forward"},
      {"raise", "crash: signal 15 (Terminated) in forward"},
      {"raise_fault", "crash: signal 11 (Segmentation fault) in forward"},
      {"unprotect_input", "input_written: Q was written in forward, at byte 0"},
      {"unprotect_and_restore", "input_written: Q was written in forward, at byte 0"},
      {"write_input_by_descriptor", "input_written: Q holds other bytes than before"},
      {"block_signal", "signal_mask: signal 10 (User defined signal 1) was blocked in forward"},
      {"leave_timer", "timer: a timer (alarm, setitimer) was left running or stopped in forward"},
      {"lower_limit", "resource_limit: RLIMIT_NOFILE "},
      {"change_umask", "umask: the mask 0"},
      {"change_nice", "scheduling: the nice value "},
  };
  if (std::thread::hardware_concurrency() > 1) {
    cases.push_back({"bind_thread", "scheduling: the calling thread was bound to other"});
  }
  if (kMemoryLimits) {
    cases.push_back({"allocate", "memory: "});
    cases.push_back({"exit_without_memory",
                     "memory: an allocation was refused at the memory limit and the process was "
                     "ended with status 1 in forward: no memory left"});
  }
  for (const Expected& expected : cases) {
    const proptest::LawResult result =
        check(law, kernel_called(kernels, expected.kernel), small_case());
    CAPTURE(expected.kernel, expected.text, result.message);
    CHECK(result.message.rfind(expected.text, 0) == 0);
    const std::optional<FaultKind> kind = kind_in(result.message);
    REQUIRE(kind);
    CHECK(result.verdict == verdict_of(*kind));
  }
  // A fault that happens only in a later call of the same process.
  const attest_kernel& keeps = kernel_called(kernels, "keep_pointer");
  CHECK(check(law, keeps, small_case()).verdict == Verdict::passed);
  const proptest::LawResult stale = check(law, keeps, small_case());
  CHECK(stale.message ==
        "stale_memory: memory of an earlier call was read in forward (a pointer "
        "that was kept, or an address computed wrongly)");
}

TEST_CASE("the limit after a hang is a second at least, and named") {
  CHECK(limit_after_hang(30, 0.02).seconds == 1);
  CHECK(limit_after_hang(30, 0.02).why == "the limit after a call that did not return within 30 s");
  CHECK(limit_after_hang(30, 0.5).seconds == 5);
  CHECK(limit_after_hang(30, 0.5).why ==
        "ten times its slowest call, the limit after a call that did not return within 30 s");
  CHECK(limit_after_hang(30, 4).seconds == 30);
  CHECK(limit_after_hang(0.2, 0).seconds == 0.2);
  CHECK(limit_after_hang(0.2, 0).why.empty());

  Limits tight = limits();
  tight.timeout_seconds = 1.25;
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), tight);
  const auto hangs = [&] {
    return check(proptest::find_law("reference_forward"), kernel_called(kernels, "hang"),
                 small_case())
        .message;
  };
  CHECK(hangs() == "hang: forward did not return within 1.25 s");
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THAT(hangs(), Catch::StartsWith("hang: forward did not return within 1"));
  CHECK(std::chrono::steady_clock::now() - begin >= std::chrono::seconds(1));
}

TEST_CASE("a call says why it fails") {
  const IsolatedKernels kernels = isolate_library(plugin("failing"), limits());
  const proptest::Law& law = proptest::find_law("reference_forward");
  const std::string failed = "failed: the call returned ATTEST_FAILED for what is claimed";
  const std::vector<Expected> cases{
      {"says_why", "; it says: no tile fits into the cache"},
      {"says_nothing", ""},
      {"says_on_stderr",
       "; it says: on its standard error: plan: 3 of 4 tiles | out of descriptors"},
      {"says_without_end", "; it says: \\x1b!!!!"},
  };
  for (const Expected& expected : cases) {
    const proptest::LawResult result =
        check(law, kernel_called(kernels, expected.kernel), small_case());
    CAPTURE(expected.kernel, expected.text, result.message);
    CHECK(result.verdict == Verdict::violated);
    CHECK(result.message.rfind(failed + expected.text, 0) == 0);
    CHECK(kind_in(result.message) == FaultKind::failed);
  }
  CHECK(check(law, kernel_called(kernels, "says_nothing"), small_case()).message == failed);
  CHECK(check(law, kernel_called(kernels, "says_too_much"), small_case()).message ==
        "out_of_bounds: message: written 1 bytes past its last element in forward");
  const proptest::LawResult refused =
      check(law, kernel_called(kernels, "refuses_with_text"), small_case());
  CHECK(refused.verdict == Verdict::unsupported);
  CHECK(refused.message.find("; it says: one query alone") != std::string::npos);
}

TEST_CASE("exceptions and last words are shown") {
  const IsolatedKernels kernels = isolate_library(plugin("failing"), limits());
  const proptest::Law& law = proptest::find_law("reference_forward");
  const std::vector<Expected> cases{
      {"throws_error",
       "exception: std::runtime_error: 'no plan for this shape' was thrown and not caught in "
       "forward"},
      {"throws_number", "exception: int was thrown and not caught in forward"},
      {"throws_in_thread",
       "abort: abort() in forward: terminate called after throwing an instance of "
       "'std::runtime_error' | what():  lost in a thread"},
      {"crashes_with_words",
       "crash: segmentation fault at the null pointer in forward: about to fall over"},
  };
  for (const Expected& expected : cases) {
    const proptest::LawResult result =
        check(law, kernel_called(kernels, expected.kernel), small_case());
    CAPTURE(expected.kernel, result.message);
    CHECK(result.verdict == Verdict::crashed);
    CHECK(result.message == expected.text);
  }
}

TEST_CASE("one element beyond a full page meets the guard") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const proptest::Law& law = proptest::find_law("reference_forward");
  CHECK(check(law, kernel_called(kernels, "write_before"), page_case()).message ==
        "out_of_bounds: O: written 4 bytes before its first element in forward");
  CHECK(check(law, kernel_called(kernels, "write_after"), page_case()).message ==
        "out_of_bounds: O: written 1 bytes past its last element in forward");
}

TEST_CASE("calls that must be alike are compared") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const proptest::LawResult result =
      check(proptest::find_law("repeat"), kernel_called(kernels, "alternate"), small_case());
  CAPTURE(result.message);
  CHECK(result.verdict == Verdict::violated);
  CHECK(result.message.find("the second of two equal calls differs") != std::string::npos);
}

TEST_CASE("a failure that needs earlier calls says how many") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const proptest::Law& law = proptest::find_law("reference_forward");
  constexpr int kMost = 32;
  const auto count = [&](const char* name) {
    return checks_until_failure(law, kernel_called(kernels, name), small_case(), kMost);
  };
  CHECK(count("fail_after_ten") == 11);
  CHECK(count("keep_pointer") == 2);
  CHECK(count("write_after") == 1);
  CHECK(count("nothing") == std::nullopt);
}

TEST_CASE("a kernel that behaves passes every law in a worker") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const attest_kernel& kernel = kernel_called(kernels, "nothing");
  REQUIRE(is_isolated(kernel));
  int passed = 0;
  for (const proptest::Law& law : proptest::laws()) {
    if (!proptest::concerns(law, kernel.description)) continue;
    for (const char* problem : {"sq=5,sk=5,d=4", "b=2,hq=2,sq=17,sk=33,d=8,strides=transposed"}) {
      const proptest::LawResult result =
          check(law, kernel, {Problem::parse(problem), proptest::Values::normal, 3, 1});
      CAPTURE(law.name, problem, result.message);
      CHECK(result.verdict != Verdict::violated);
      CHECK(result.verdict != Verdict::crashed);
      passed += result.verdict == Verdict::passed ? 1 : 0;
    }
  }
  CHECK(passed > 0);
}

TEST_CASE("a worker keeps what it opened itself, and has nothing of the certifier's") {
  const int descriptor = open("/dev/null", O_RDONLY);
  REQUIRE(dup2(descriptor, testing::kInherited) == testing::kInherited);
  Limits own = limits();
  own.program = ATTEST_EARLY_DESCRIPTOR;
  const auto isolated = isolate_builtin("early_descriptor", own);
  const Problem problem = small_case().problem;
  const proptest::InputValues values = proptest::make_values(problem, proptest::Values::normal, 1);
  const proptest::KernelRun run =
      proptest::run(isolated->kernel(), problem, values, Direction::forward, small_case());
  CHECK(run.status == ATTEST_OK);
  CHECK(fcntl(testing::kInherited, F_GETFD) >= 0);
  close(testing::kInherited);
  close(descriptor);
}

TEST_CASE("a built-in kernel needs a worker when it runs on a device") {
  attest_description description{};
  description.device = ATTEST_CPU;
  CHECK_FALSE(needs_worker(description));
  description.device = ATTEST_CUDA;
  CHECK(needs_worker(description));
}

// A kernel that reads the shared columns wrongly sees in a worker too that they are shared.
TEST_CASE("K and V in one buffer arrive") {
  const attest_kernel& direct =
      fixtures::defective_kernel(fixtures::Defect::shared_kv_at_other_end);
  const auto isolated = isolate_builtin("broken/shared_kv_at_other_end", limits());
  for (const char* text : {"b=2,hq=2,sq=5,sk=7,d=4,dv=2,shared_kv=first",
                           "sq=5,sk=7,d=2,dv=4,strides=padded,shared_kv=last"}) {
    CAPTURE(text);
    const auto run = [](const attest_kernel& kernel, const Problem& problem) {
      const proptest::Case c{problem, proptest::Values::normal, 5, 1};
      const auto values = proptest::make_values(problem, c.values, c.seed);
      return proptest::run(kernel, problem, values, Direction::forward, c);
    };
    const Problem shared = Problem::parse(text);
    Problem apart = shared;
    apart.shared_kv =
        shared.shared_kv == SharedKv::first ? SharedKv::first_apart : SharedKv::last_apart;
    const proptest::KernelRun a = run(direct, shared), b = run(isolated->kernel(), shared),
                              c = run(isolated->kernel(), apart);
    REQUIRE(b.completed());
    CHECK(proptest::compare_bits(a.O.view(), b.O.view()).verdict == Verdict::passed);
    CHECK(proptest::compare_bits(c.O.view(), b.O.view()).verdict != Verdict::passed);
  }
}

TEST_CASE("strides arrive") {
  // A built-in kernel gives the same bits in a worker as in this process.
  Registry registry;
  register_cpu(registry);
  const attest_kernel& direct = registry.find("cpu/standard");
  const auto isolated = isolate_builtin("cpu/standard", limits());
  CHECK(std::string(isolated->kernel().description.name) == "cpu/standard");
  for (const char* text :
       {"b=2,hq=4,hkv=2,sq=9,sk=13,d=5,dv=3,mask=causal_br,dtype=bf16,strides=padded",
        "b=2,hq=2,sq=7,sk=7,d=4,dtype=f16,layout=bhsd,strides=interleaved",
        "b=3,hq=2,sq=9,sk=13,d=4,mask=lengths_0_5_13,strides=broadcast",
        "b=1,hq=1,sq=3,sk=4,d=2,strides=huge", "hq=2,sq=4,sk=6,d=4,alibi=standard",
        "b=1,hq=1,sq=0,sk=4,d=2"}) {
    CAPTURE(text);
    const proptest::Case c{Problem::parse(text), proptest::Values::normal, 5, 1};
    REQUIRE(proptest::unclaimed(direct.description, c.problem, Direction::backward) == "");
    const proptest::InputValues values = proptest::make_values(c.problem, c.values, c.seed);
    const auto run = [&](const attest_kernel& kernel) {
      return proptest::run(kernel, c.problem, values, Direction::backward, c);
    };
    const proptest::KernelRun a = run(direct), b = run(isolated->kernel());
    REQUIRE(a.completed());
    CHECK(b.misconduct.empty());
    REQUIRE(b.completed());
    const auto same = [](const Tensor& x, const Tensor& y) {
      return proptest::compare_bits(x.view(), y.view()).verdict == Verdict::passed;
    };
    CHECK(same(a.O, b.O));
    CHECK(same(a.LSE, b.LSE));
    CHECK(same(a.dQ, b.dQ));
    CHECK(same(a.dK, b.dK));
    CHECK(same(a.dV, b.dV));
  }
}

TEST_CASE("sparsity patterns arrive") {
  const auto& direct = fixtures::defective_kernel(fixtures::Defect::none);
  const auto isolated = isolate_builtin("fixtures/correct", limits());
  for (const char* mask : {"block_3x4_50_1", "block_64x64_100_1", "nm_2_5_1", "pairs_40_1",
                           "global_1_2_0+causal_br", "pairs_0_1"}) {
    CAPTURE(mask);
    const proptest::Case c{Problem::parse("b=2,hq=2,sq=9,sk=13,d=4,mask=" + std::string(mask)),
                           proptest::Values::normal, 5, 1};
    const proptest::InputValues values = proptest::make_values(c.problem, c.values, c.seed);
    const auto run = [&](const attest_kernel& kernel) {
      return proptest::run(kernel, c.problem, values, Direction::backward, c);
    };
    const proptest::KernelRun a = run(direct), b = run(isolated->kernel());
    REQUIRE(a.completed());
    CHECK(a.misconduct.empty());
    CHECK(b.misconduct.empty());
    REQUIRE(b.completed());
    for (const auto& [x, y] :
         {std::pair(&a.O, &b.O), std::pair(&a.LSE, &b.LSE), std::pair(&a.dQ, &b.dQ),
          std::pair(&a.dK, &b.dK), std::pair(&a.dV, &b.dV)}) {
      CHECK(proptest::compare_bits(x->view(), y->view()).verdict == Verdict::passed);
    }
  }
}

TEST_CASE("an impossible workspace is a finding") {
  const IsolatedKernels kernels = isolate_library(plugin("nonsense_huge_workspace"), limits());
  const proptest::LawResult result =
      check(proptest::find_law("reference_forward"), kernels.front()->kernel(),
            {Problem::parse("sq=3,d=4"), proptest::Values::normal, 1, 1});
  CHECK(result.message.rfind("workspace_size: workspace_bytes asks for 18446744073709547519 bytes",
                             0) == 0);
  CHECK(result.verdict == Verdict::violated);
}

TEST_CASE("bytes beside a buffer") {
  Arena arena;
  CallMemory memory(arena, 1u << 20);
  constexpr std::size_t kBytes = 100;
  const std::size_t index = memory.place("O", kBytes, Access::writable);
  CHECK(memory.address(index) % CallMemory::kAlignment == 0);
  CHECK_FALSE(memory.overrun());
  std::byte* const first = memory.bytes(index);
  for (const std::ptrdiff_t at : {std::ptrdiff_t{-1}, std::ptrdiff_t{kBytes}}) {
    const std::byte before = first[at];
    first[at] = std::byte{0};
    CHECK(memory.overrun());
    first[at] = before;
    CHECK_FALSE(memory.overrun());
  }
}

TEST_CASE("addresses are explained") {
  Arena arena;
  constexpr std::uint64_t kBegin = 1u << 30, kFirst = kBegin + (1u << 20), kEnd = 1ull << 40;
  CallMemory memory(arena, kFirst);
  const std::size_t q = memory.place("Q", 100, Access::read_only);
  const std::size_t o = memory.place("O", 100, Access::writable);
  const auto explained = [&](std::uint64_t address, Access how) {
    return memory.explain(address, how, kBegin, kEnd, "here").text();
  };
  CHECK(explained(0, Access::read_only) == "crash: segmentation fault at the null pointer here");
  CHECK(explained(kBegin + 8, Access::read_only).rfind("stale_memory: memory of an earlier", 0) ==
        0);
  CHECK(explained(memory.address(q) + 4, Access::writable) ==
        "input_written: Q was written here, at byte 4");
  constexpr std::uint64_t kRoundedBytes = 128;
  CHECK(explained(memory.address(o) + kRoundedBytes, Access::writable) ==
        "out_of_bounds: O: written 29 bytes past its last element here");
}

TEST_CASE("the same memory comes again where a law wants it") {
  // It returns what it returned for the same addresses.
  const auto isolated = isolate_builtin("cheat/result_by_pointer", limits());
  const proptest::Case c = page_case();
  const auto same_result = [&] {
    std::vector<Tensor> results;
    for (const std::uint64_t seed : {1u, 2u}) {
      const auto values = proptest::make_values(c.problem, c.values, seed);
      results.push_back(
          proptest::run(isolated->kernel(), c.problem, values, Direction::forward, c).O);
    }
    return proptest::identical(results[0], results[1]);
  };
  CHECK_FALSE(same_result());
  {
    const proptest::SameMemory kept;
    CHECK(same_result());
  }
  CHECK_FALSE(same_result());
  const proptest::SameMemory another;  // lies where nothing lay before
  const auto values = proptest::make_values(c.problem, c.values, 1);
  const auto of_its_own =
      proptest::run(isolated->kernel(), c.problem, proptest::make_values(c.problem, c.values, 3),
                    Direction::forward, c);
  const auto again = proptest::run(isolated->kernel(), c.problem, values, Direction::forward, c);
  CHECK(proptest::identical(of_its_own.O, again.O));
}

TEST_CASE("a command has the same limits") {
  Registry registry;
  register_cpu(registry);
  CHECK(isolation_words(registry.find("cpu/standard")).empty());
  Limits narrow = limits();
  narrow.timeout_seconds = Limits().timeout_seconds;
  CHECK(isolation_words(isolate_builtin("cpu/standard", narrow)->kernel()) == " --isolate");
  narrow.timeout_seconds = 0.5;
  narrow.memory_limit_bytes = std::uint64_t{200} << 20;
  CHECK(isolation_words(isolate_builtin("cpu/standard", narrow)->kernel()) ==
        " --isolate --timeout 0.5 --memory-limit 200");
}

}  // namespace attest::certify::worker
