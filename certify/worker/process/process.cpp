#include "certify/worker/process/process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "certify/worker/conduct/sent_signals.hpp"
#include "certify/worker/conduct/surroundings.hpp"
#include "certify/worker/process/arguments.hpp"
#include "certify/worker/process/sanitizers.hpp"
#include "certify/worker/process/spawn.hpp"
#include "core/error.hpp"

extern char** environ;

namespace attest::certify::worker {
namespace {

using Clock = std::chrono::steady_clock;

// A short limit is meant for calls; starting a process on a busy machine may take longer, and an
// interpreter imports whole frameworks.
constexpr double kLoadSeconds = 30, kImportSeconds = 120;

std::string own_program() {
  char path[PATH_MAX];
  const ssize_t count = readlink("/proc/self/exe", path, sizeof path);
  require(count < 0 ? errno : 0, "find this program's file");
  return std::string(path, static_cast<std::size_t>(count));
}

// Threads that wait for work spin otherwise, and take the processor from the certifier.
std::vector<std::string> worker_environment() {
  constexpr std::string_view kPolicy = "OMP_WAIT_POLICY=";
  std::vector<std::string> variables{std::string(kPolicy) + "passive"};
  for (char** variable = environ; *variable != nullptr; ++variable) {
    if (std::string_view(*variable).substr(0, kPolicy.size()) == kPolicy) {
      variables.front() = *variable;
    } else {
      variables.emplace_back(*variable);
    }
  }
  return variables;
}

// A duplicate above every number that the child's descriptors get, so that none is overwritten
// before it is duplicated.
int out_of_the_way(int descriptor, const std::string& what) {
  const int moved = descriptor < 0 ? -1 : fcntl(descriptor, F_DUPFD_CLOEXEC, kLastDescriptor + 1);
  const int error = moved < 0 ? errno : 0;
  if (descriptor >= 0) close(descriptor);
  require(error, what);
  return moved;
}

}  // namespace

Process::Process(const Source& source, const Limits& limits, Process* origin)
    : memory_limit_bytes_(kMemoryLimits ? limits.memory_limit_bytes : 0) {
  const double load_seconds =
      std::max(limits.timeout_seconds, source.program.empty() ? kLoadSeconds : kImportSeconds);
  try {
    begin(source, limits, load_seconds, origin);
  } catch (...) {
    kill();
    throw;
  }
  const Ending ending = wait(load_seconds);
  std::string why;
  if (ending == Ending::timed_out) {
    why = source.subject + ": did not start within " + std::to_string(std::lround(load_seconds)) +
          " s";
  } else if (ending == Ending::died && control().text[0] != '\0') {
    why = source.subject + ": " + control().text;
  } else if (ending == Ending::died && WIFSIGNALED(wait_status_)) {
    why = source.subject + ": " + source.loading + " died of signal " +
          std::to_string(WTERMSIG(wait_status_)) + " (" + strsignal(WTERMSIG(wait_status_)) + ")";
  } else if (ending == Ending::died && WEXITSTATUS(wait_status_) == kOtherVersion) {
    why = source.subject + ": its program is of another version of attest; install both again";
  } else if (ending == Ending::died) {
    why = source.subject + ": " + source.loading + " ended the process with status " +
          std::to_string(WEXITSTATUS(wait_status_));
  } else if (control().kernel_count == 0 && !forks()) {
    why = control().text;
  }
  if (const std::string words = last_words(); ending == Ending::died && !words.empty()) {
    why += ": " + words;
  }
  if (!why.empty()) {
    kill();
    throw InvalidProblem(why);
  }
  next_address = control().reserved_begin;
}

Process::~Process() { kill(); }

void Process::keep_memory() {
  const proptest::SameMemory::Run now = proptest::SameMemory::current();
  if (now.scope != kept_.scope) {
    kept_address_ = next_address;
  } else if (now.run != kept_.run) {
    next_address = kept_address_;
  }
  kept_ = now;
}

void Process::begin(const Source& source, const Limits& limits, double load_seconds,
                    Process* origin) {
  Control& control = arena_.control();
  control.layout = layout_of_messages();
  control.timeout_seconds = load_seconds;
  control.memory_limit_bytes = limits.memory_limit_bytes;
  control.forks = source.forks && origin == nullptr ? Forks::asked : Forks::none;
  int ends[2];
  require(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 ? errno : 0,
          "make a socket");
  socket_.reset(ends[0]);
  const Descriptor child_end(out_of_the_way(ends[1], "duplicate a socket"));
  output_.reset(out_of_the_way(memfd_create("attest-stdout", MFD_CLOEXEC), "make a file"));
  errors_.reset(out_of_the_way(memfd_create("attest-stderr", MFD_CLOEXEC), "make a file"));
  const Descriptor arena(fcntl(arena_.descriptor(), F_DUPFD_CLOEXEC, kLastDescriptor + 1));
  require(arena.get() < 0 ? errno : 0, "duplicate a file");
  const std::string arena_path = "/proc/self/fd/" + std::to_string(arena.get());
  const Descriptor read_only(
      out_of_the_way(open(arena_path.c_str(), O_RDONLY | O_CLOEXEC), "open a file for reading"));
  const Given given{output_.get(), errors_.get(), child_end.get(), arena.get(), read_only.get()};
  if (origin == nullptr) {
    spawn(source, limits, given);
  } else {
    pid_ = origin->fork(given, load_seconds);
  }
  process_descriptor_.reset(watch_process(pid_));
}

void Process::spawn(const Source& source, const Limits& limits, const Given& given) {
  SpawnAttributes spawn;
  spawn.hold_requests();
  posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  int descriptor = STDOUT_FILENO;
  for (const int own : given) posix_spawn_file_actions_adddup2(&spawn.actions, own, descriptor++);
#if defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 34)
  // Before the program starts: what it opens itself is not the certifier's.
  posix_spawn_file_actions_addclosefrom_np(&spawn.actions, kLastDescriptor + 1);
#endif
#endif
  std::string program = source.program;
  std::vector<std::string> words{program};
  if (program.empty()) {
    program = limits.program.empty() ? own_program() : limits.program;
    words = {program, "worker"};
  }
  words.insert(words.end(), source.words.begin(), source.words.end());
  std::vector<std::string> variables = worker_environment();
  const int error = posix_spawn(&pid_, program.c_str(), &spawn.actions, &spawn.attributes,
                                pointers(words).data(), pointers(variables).data());
  if (error != 0) pid_ = -1;
  require(error, "start '" + program + "'");
}

pid_t Process::fork(const Given& given, double seconds) {
  const std::lock_guard<std::mutex> lock(forking_);
  const bool asked = send_descriptors(socket_, given);
  if (!asked) kill();
  if (!asked || wait(seconds) != Ending::finished) {
    throw InvalidProblem("worker: the process that others are forked from has died");
  }
  const pid_t forked = control().forked;
  if (forked < 0) arena_.control().forks = Forks::none;
  require(forked < 0 ? -forked : 0, "fork");
  return forked;
}

bool Process::alive() {
  const std::lock_guard<std::mutex> lock(forking_);
  return pid_ > 0;
}

Process::Ending Process::run(double timeout_seconds) {
  Control& control = arena_.control();
  control.timeout_seconds = timeout_seconds;
  control.status = 0;
  control.disturbed = 0;
  errors_begin_ = size_of(errors_);
  if (send(socket_.get(), "t", 1, MSG_NOSIGNAL) != 1) {
    kill();
    return Ending::died;
  }
  const pid_t worker = pid_;
  const Ending ending = wait(timeout_seconds);
  sent_signal_ = take_signal_of(worker);
  return ending;
}

Process::Ending Process::wait(double timeout_seconds) {
  constexpr std::chrono::duration<double> kEndingSeconds{5};
  auto deadline = Clock::now() + std::chrono::duration<double>(timeout_seconds);
  bool hung_up = false, ending = false;
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    // poll ignores negative descriptors
    pollfd events[2] = {{hung_up ? -1 : socket_.get(), POLLIN, 0},
                        {process_descriptor_.get(), POLLIN, 0}};
    const auto milliseconds = std::clamp<std::int64_t>(left.count(), 0, INT_MAX);
    const int count = poll(events, 2, static_cast<int>(milliseconds));
    if (count < 0 && errno == EINTR) continue;
    if (count == 0 && hung_up && !ending && control().phase != Phase::calling) {
      ending = true;  // it has returned and lives on without its socket: it will notice soon
      deadline = Clock::now() + kEndingSeconds;
      continue;
    }
    if (count == 0) {
      last_data_bytes_ = data_bytes_of(pid_);
      kill();
      return hung_up && control().phase != Phase::calling ? Ending::died : Ending::timed_out;
    }
    char byte = 0;
    if (events[0].revents != 0 && recv(socket_.get(), &byte, 1, MSG_DONTWAIT) == 1) {
      return Ending::finished;
    }
    if (events[1].revents != 0) {
      kill();
      return Ending::died;
    }
    if (events[0].revents != 0) hung_up = true;  // its end is closed, but it lives
  }
}

void Process::kill() {
  if (pid_ > 0) wait_status_ = kill_group(pid_);
  pid_ = -1;
}

bool Process::out_of_memory() const {
  return control().out_of_memory != 0 ||
         (memory_limit_bytes_ > 0 && near_limit(last_data_bytes_, memory_limit_bytes_));
}

std::string Process::last_words() const { return last_lines(errors_, errors_begin_); }

}  // namespace attest::certify::worker
