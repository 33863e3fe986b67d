// Effects of a call on others than its own process, and what goes on after the call.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <thread>

#include "certify/worker/conduct/sent_signals.hpp"
#include "certify/worker/conduct/surroundings.hpp"
#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/process/spawn.hpp"
#include "certify/worker/testing/plugins.hpp"
#include "core/testing/catch.hpp"

namespace attest::certify::worker {
namespace {

using testing::kernel_called;
using testing::limits;
using testing::plugin;
using testing::small_case;

std::atomic<int> interruptions{0};

class CountInterruptions {
 public:
  CountInterruptions() {
    struct sigaction action {};
    action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESTART);
    action.sa_sigaction = [](int signal, siginfo_t* info, void*) {
      if (!sent_by_worker(signal, *info)) ++interruptions;
    };
    sigaction(SIGINT, &action, &before_);
  }
  ~CountInterruptions() { sigaction(SIGINT, &before_, nullptr); }
  CountInterruptions(const CountInterruptions&) = delete;
  CountInterruptions& operator=(const CountInterruptions&) = delete;

 private:
  struct sigaction before_ {};
};

// Sends every signal that asks for an end to every process that this one started, again and again.
class Requests {
 public:
  Requests() : thread_([this] { send(); }) {}
  ~Requests() {
    done_ = true;
    thread_.join();
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  int sent() const { return sent_; }

 private:
  void send() {
    while (!done_) {
      for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
        std::ifstream children(thread.path() / "children");
        for (pid_t child = 0; children >> child;) {
          for (const int signal : kRequests) sent_ += kill(child, signal) == 0 ? 1 : 0;
        }
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  std::atomic<bool> done_{false};
  std::atomic<int> sent_{0};
  std::thread thread_;
};

}  // namespace

TEST_CASE("a signal from elsewhere that asks a worker to end is no crash of the kernel") {
  const Requests requests;
  for (int start = 0; start < 5; ++start) {
    const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
    const proptest::Law& law = proptest::find_law("reference_forward");
    for (int call = 0; call < 5; ++call) {
      const proptest::LawResult result =
          check(law, kernel_called(kernels, "nothing"), small_case());
      CHECK(result.message.empty());
      CHECK(result.verdict == Verdict::passed);
    }
    CHECK(check(law, kernel_called(kernels, "raise"), small_case()).message ==
          "crash: signal 15 (Terminated) in forward");
  }
  CHECK(requests.sent() > 0);
}

TEST_CASE("a thread that goes on working for a call that returned") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const attest_kernel& kernel = kernel_called(kernels, "leave_thread");
  const proptest::Law& law = proptest::find_law("reference_forward");
  proptest::LawResult result = check(law, kernel, small_case());
  if (result.verdict == Verdict::passed) {  // it had no processor yet; it has one between the calls
    std::this_thread::sleep_for(std::chrono::seconds(1));
    result = check(law, kernel, small_case());
  }
  CHECK(result.message ==
        "left_thread: a thread that was left running read memory of a call that had returned");
  CHECK(result.verdict == Verdict::violated);
}

TEST_CASE("threads without end") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const attest_kernel& leak = kernel_called(kernels, "leave_more_threads");
  const int most = Surroundings::most_growths();
  CHECK(checks_until_failure(proptest::find_law("reference_forward"), leak, small_case(),
                             2 * most) == most + 1);
}

TEST_CASE("descriptors without end") {
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const attest_kernel& leak = kernel_called(kernels, "leave_descriptor");
  const proptest::Law& law = proptest::find_law("reference_forward");
  const int most = Surroundings::most_growths();
  CHECK(checks_until_failure(law, leak, small_case(), 2 * most) == most + 1);
  restart(leak);
  proptest::LawResult result;
  for (int calls = 0; calls <= most; ++calls) result = check(law, leak, small_case());
  CHECK_THAT(result.message, Catch::StartsWith("left_descriptor: descriptors were left open by " +
                                               std::to_string(most + 1) + " calls, numbers to "));
  CHECK(result.verdict == Verdict::violated);
}

TEST_CASE("a signal to the certifier is a finding, not an interruption") {
  const CountInterruptions count;
  const IsolatedKernels kernels = isolate_library(plugin("misbehaving"), limits());
  const proptest::LawResult result =
      check(proptest::find_law("reference_forward"), kernel_called(kernels, "signal_certifier"),
            small_case());
  CHECK(result.message ==
        "parent_signal: signal 2 (Interrupt) was sent to the certifier in forward");
  CHECK(result.verdict == Verdict::violated);
  CHECK(interruptions == 0);
  kill(getpid(), SIGINT);
  CHECK(interruptions == 1);
}

}  // namespace attest::certify::worker
