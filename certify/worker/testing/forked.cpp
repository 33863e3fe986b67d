// A worker that is forked: FILE gets a line with the number of each process that was started. The
// second word is what the program has by then that a fork would not have for itself.
#include "certify/worker/process/forked.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>

#include "certify/worker/process/serve.hpp"

namespace {

std::size_t own_calls = 0;
std::size_t* calls = &own_calls;

// How many calls and signals the process has seen; for a workspace of backward its parent.
std::size_t answer(const void*, const attest_problem*, std::uint32_t direction) {
  ++*calls;
  return direction == ATTEST_FORWARD ? *calls : static_cast<std::size_t>(getppid());
}

attest_status forward(const void*, const attest_forward_args*) { return ATTEST_OK; }

void have(const std::string& what) {
  if (what == "thread") std::thread([] { pause(); }).detach();
  if (what == "child" && fork() == 0) execlp("sleep", "sleep", "20", nullptr);
  if (what == "file") static_cast<void>(open("/dev/null", O_RDONLY));
  if (what == "memory") {
    calls = static_cast<std::size_t*>(
        mmap(nullptr, sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  }
  if (what == "timer") {
    constexpr itimerval kLate{{}, {1000, 0}};
    setitimer(ITIMER_REAL, &kLate, nullptr);
  }
  if (what == "other timer") {
    timer_t timer = nullptr;
    timer_create(CLOCK_MONOTONIC, nullptr, &timer);
  }
  if (what == "handler") ::signal(SIGUSR1, [](int) { ++*calls; });
  if (what == "output") std::puts("ready");
}

}  // namespace

int main(int, char** words) {
  std::ofstream(words[1], std::ios::app) << getpid() << '\n';
  have(words[2]);
  attest::certify::worker::fork_when_asked();
  attest_kernel kernel{};
  kernel.struct_size = sizeof kernel;
  kernel.abi_version = ATTEST_ABI_VERSION;
  kernel.description.struct_size = sizeof kernel.description;
  kernel.description.name = "forked";
  kernel.description.device = ATTEST_CPU;
  kernel.description.directions = ATTEST_FORWARD;
  kernel.description.dtypes = 1U << ATTEST_F32;
  kernel.description.numerics.struct_size = sizeof kernel.description.numerics;
  kernel.workspace_bytes = answer;
  kernel.forward = forward;
  return attest::certify::worker::serve([&] { return std::vector<const attest_kernel*>{&kernel}; });
}
