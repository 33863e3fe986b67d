// Kernels of languages with a runtime: what they do to their process, and say so.
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/testing/catch.hpp"
#include "proptest/laws/law.hpp"

namespace attest::certify::worker {
namespace {

using testing::kernel_called;
using testing::limits;
using testing::plugin;
using testing::small_case;

proptest::LawResult checked(const attest_kernel& kernel) {
  return check(proptest::find_law("reference_forward"), kernel, small_case());
}

}  // namespace

TEST_CASE("what a runtime does in its first call is no finding where it is declared") {
  const IsolatedKernels kernels = isolate_library(plugin("runtime"), limits());
  for (const char* name : {"locale", "environment", "signals", "processes"}) {
    const attest_kernel& kernel = kernel_called(kernels, name);
    CAPTURE(name);
    CHECK(kernel.description.may_change != 0);
    for (int call = 0; call < 2; ++call) {
      const proptest::LawResult result = checked(kernel);
      CAPTURE(result.message);
      CHECK(result.verdict == Verdict::passed);
    }
  }
}

TEST_CASE("a declaration excuses what it names alone") {
  // The same kernels in misbehaving.c declare nothing.
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  for (const char* name :
       {"change_locale", "change_environment", "change_signal_handler", "fork"}) {
    CAPTURE(name);
    CHECK(checked(kernel_called(kernels, name)).verdict == Verdict::violated);
  }
  const IsolatedKernels runtimes = isolate_library(plugin("runtime"), limits());
  const attest_kernel& mixed = kernel_called(runtimes, "environment_declared_as_locale");
  CHECK(checked(mixed).message.rfind("environment: variables were changed: RUNTIME", 0) == 0);
}

TEST_CASE("a handler that was put back is as it was") {
  const IsolatedKernels kernels = isolate_library(plugin("runtime"), limits());
  const proptest::LawResult result = checked(kernel_called(kernels, "handler_put_back"));
  CAPTURE(result.message);
  CHECK(result.verdict == Verdict::passed);
}

TEST_CASE("what a library starts while it loads is not charged to a call, nor is its end") {
  const IsolatedKernels kernels = isolate_library(plugin("runtime"), limits());
  for (const char* name : {"helper_ends", "handler_put_back"}) {
    const proptest::LawResult result = checked(kernel_called(kernels, name));
    CAPTURE(name, result.message);
    CHECK(result.verdict == Verdict::passed);
  }
  // Beside the helpers a new process is one of the call.
  const proptest::LawResult spawned = checked(kernel_called(kernels, "processes_undeclared"));
  CAPTURE(spawned.message);
  CHECK(spawned.message.rfind("fork: a process was started", 0) == 0);
}

TEST_CASE("a library that takes its process's own descriptors is refused with their numbers") {
  CHECK_THROWS_WITH(isolate_library(plugin("loading_loses"), limits()),
                    Catch::Contains("while it loaded it closed or replaced descriptors that its "
                                    "process is called by (3, 4, 5)"));
}

#if defined(__x86_64__)
TEST_CASE("a library that flushes denormals since it was loaded is told how it was linked") {
  const IsolatedKernels kernels = isolate_library(plugin("loading_flushes"), limits());
  CHECK_THAT(checked(kernel_called(kernels, "quiet")).message,
             Catch::StartsWith("floating_point: denormals or exceptions are handled otherwise, "
                               "since the library was loaded (-ffast-math and -Ofast do that"));
}
#endif

TEST_CASE("what a library prints and closes while it loads is not charged to a call") {
  const IsolatedKernels kernels = isolate_library(plugin("loading"), limits());
  const auto message = [&](const char* name) {
    return checked(kernel_called(kernels, name)).message;
  };
  for (int call = 0; call < 3; ++call) {
    const proptest::LawResult result = checked(kernel_called(kernels, "quiet"));
    CAPTURE(result.message);
    CHECK(result.verdict == Verdict::passed);
  }
  for (const char* name : {"prints", "prints_to_stream"}) {
    CAPTURE(name);
    CHECK(message(name) == "printed: 7 bytes, beginning with 'called' in forward");
  }
  CHECK(message("replaces_output") ==
        "closed_descriptor: descriptors that it had not opened were closed (1) in forward");
}

}  // namespace attest::certify::worker
