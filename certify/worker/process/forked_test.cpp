// Programs of which one process has read all there is, and the others are its forks.
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "certify/worker/process/isolated_kernel.hpp"
#include "certify/worker/process/sanitizers.hpp"
#include "core/testing/catch.hpp"
#include "proptest/values/values.hpp"

namespace attest::certify::worker {
namespace {

class Forked {
 public:
  explicit Forked(const std::string& has = "nothing") {
    std::string pattern = (std::filesystem::temp_directory_path() / "attest-XXXXXX").string();
    close(mkstemp(pattern.data()));
    file_ = pattern;
    kernels_ =
        isolate_program({ATTEST_FORKED, {file_, has}, {}, "the program", "it", "", true}, {}, "");
  }
  ~Forked() { std::filesystem::remove(file_); }
  Forked(const Forked&) = delete;
  Forked& operator=(const Forked&) = delete;

  const attest_kernel& kernel() const { return kernels_.front()->kernel(); }

  std::size_t ask(std::uint32_t direction = ATTEST_FORWARD) const {
    const attest_problem problem{};
    return kernel().workspace_bytes(kernel().self, &problem, direction);
  }

  // Numbers of the processes that were started, which does not count forks.
  std::vector<pid_t> started() const {
    std::ifstream lines(file_);
    std::vector<pid_t> numbers;
    for (pid_t number = 0; lines >> number;) numbers.push_back(number);
    return numbers;
  }

 private:
  std::string file_;
  IsolatedKernels kernels_;
};

}  // namespace

TEST_CASE("a program that is forked", "[worker]") {
  const Forked program;
  for (int batch = 0; batch < 3; ++batch) {
    CHECK(program.ask() == 1);  // no call of another process has reached this one
    CHECK(program.ask() == 2);
    CHECK(program.ask(ATTEST_BACKWARD) == static_cast<std::size_t>(getpid()));
    restart(program.kernel());
  }
  // One describes itself, one is forked from; a sanitizer may have a thread of its own there.
  if (kMemoryLimits) CHECK(program.started().size() == 2);
}

TEST_CASE("a program that a fork would lack something of", "[worker]") {
  for (const char* has : {"thread", "child", "file", "memory", "timer", "other timer"}) {
    INFO(has);
    const Forked program(has);
    for (int batch = 0; batch < 2; ++batch) {
      restart(program.kernel());
      CHECK(program.ask() == 1);
    }
    CHECK(program.started().size() == 3);
  }
}

TEST_CASE("a program that prints before it is forked", "[worker]") {
  const Forked program("output");
  const proptest::Case c{Problem::parse("sq=3,d=4"), proptest::Values::normal, 1, 1};
  for (int batch = 0; batch < 2; ++batch) {
    restart(program.kernel());
    const proptest::Law& law = proptest::find_law("reference_forward");
    const std::string message = check(law, program.kernel(), c).message;
    CAPTURE(message);
    CHECK(message.find("printed") == std::string::npos);
  }
  if (kMemoryLimits) CHECK(program.started().size() == 2);
}

TEST_CASE("what is forked from gets a signal", "[worker]") {
  const Forked program("handler");
  for (int batch = 0; batch < 2; ++batch) {
    CHECK(program.ask() == 1);
    restart(program.kernel());
    if (kMemoryLimits) REQUIRE(::kill(program.started().back(), SIGUSR1) == 0);
  }
  if (kMemoryLimits) CHECK(program.started().size() == 2);
}

TEST_CASE("what is forked from is killed", "[worker]") {
  const Forked program;
  REQUIRE(program.ask() == 1);
  const pid_t origin = program.started().back();
  REQUIRE(::kill(origin, SIGKILL) == 0);
  if (kMemoryLimits) CHECK(program.ask() == 2);  // a fork lives on
  restart(program.kernel());
  CHECK(program.ask() == 1);
  CHECK(program.started().size() == 3);
}

}  // namespace attest::certify::worker
