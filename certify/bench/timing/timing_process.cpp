#include "certify/bench/timing/timing_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>

#include "certify/bench/timing/two_clocks.hpp"
#include "certify/printable.hpp"
#include "certify/worker/conduct/sent_signals.hpp"
#include "certify/worker/process/arguments.hpp"
#include "certify/worker/process/spawn.hpp"
#include "core/error.hpp"

extern char** environ;

namespace attest::certify {
namespace {

using worker::Descriptor;
using worker::require;

// The file that both processes have: a Heartbeat, and from the second page on the report as JSON.
// Texts that a kernel prints go elsewhere.
constexpr int kShared = 3;
constexpr off_t kReport = 4096;

class SharedHeartbeat {
 public:
  explicit SharedHeartbeat(int file)
      : memory_(mmap(nullptr, sizeof(Heartbeat), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)) {
    require(memory_ == MAP_FAILED ? errno : 0, "share memory");
  }
  ~SharedHeartbeat() { munmap(memory_, sizeof(Heartbeat)); }
  SharedHeartbeat(const SharedHeartbeat&) = delete;
  SharedHeartbeat& operator=(const SharedHeartbeat&) = delete;

  Heartbeat* make() const { return new (memory_) Heartbeat; }
  Heartbeat* get() const { return static_cast<Heartbeat*>(memory_); }

 private:
  void* memory_;
};

std::string place(const Heartbeat& beat) {
  const std::int32_t round = beat.round;
  const char* when = beat.began != 0 ? "in" : "after";
  if (round == Heartbeat::kLoading) return fmt::format("{} loading", when);
  if (round == Heartbeat::kWarmUp) return fmt::format("{} the call that warms up", when);
  return fmt::format("{} timed call {}", when, round + 1);
}

Death death(const Heartbeat& beat, const std::string& how, bool hung = false) {
  if (beat.kernel < 0) throw InternalError("the process that times kernels ended: " + how);
  return {static_cast<std::size_t>(beat.kernel), hung, how + " " + place(beat)};
}

double limit_of(const Heartbeat& beat, double timeout_seconds) {
  constexpr double kLoadSeconds = 30;  // as in a worker
  return beat.round == Heartbeat::kLoading ? std::max(timeout_seconds, kLoadSeconds)
                                           : timeout_seconds;
}

std::string text_of(const Descriptor& file) {
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, worker::size_of(file) - kReport)),
                   ' ');
  const ssize_t count = pread(file.get(), text.data(), text.size(), kReport);
  return count == static_cast<ssize_t>(text.size()) ? text : "";
}

pid_t start(std::vector<std::string> words, const Descriptor& shared, const Descriptor& errors) {
  worker::SpawnAttributes spawn;
  posix_spawn_file_actions_addopen(&spawn.actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&spawn.actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_adddup2(&spawn.actions, errors.get(), STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&spawn.actions, shared.get(), kShared);
  words.insert(words.begin(), "attest");
  pid_t process = -1;
  require(posix_spawn(&process, "/proc/self/exe", &spawn.actions, &spawn.attributes,
                      worker::pointers(words).data(), environ),
          "start this program again");
  return process;
}

// Ends the process and what it started, whatever happens here.
class Ended {
 public:
  explicit Ended(pid_t process) : process_(process) {}
  ~Ended() { now(); }
  Ended(const Ended&) = delete;
  Ended& operator=(const Ended&) = delete;

  int now() {
    if (process_ > 0) status_ = worker::kill_group(process_);
    process_ = -1;
    return status_;
  }

 private:
  pid_t process_;
  int status_ = 0;
};

// Waits until the process has ended, or returns why it must be ended.
TimedApart look_after(pid_t process, const Heartbeat& beat, double timeout_seconds,
                      const std::function<bool()>& interrupted) {
  constexpr double kMilli = 1e3, kNano = 1e-9, kMostSeconds = 0.5;
  const auto wake = static_cast<int>(kMilli * std::min(timeout_seconds / 10, kMostSeconds)) + 1;
  const Descriptor watched(worker::watch_process(process));
  TimedApart result;
  while (true) {
    pollfd event{watched.get(), POLLIN, 0};
    if (poll(&event, 1, wake) > 0) return result;
    if (interrupted()) {
      result.interrupted = true;
      return result;
    }
    if (const auto signal = worker::take_signal_of(process)) {
      result.death = death(beat, fmt::format("signal {} ({}) was sent to the certifier", *signal,
                                             strsignal(*signal)));
      return result;
    }
    const std::int64_t began = beat.began;
    if (began == 0) continue;
    const double limit = limit_of(beat, timeout_seconds);
    if (kNano * static_cast<double>(system_nanoseconds() - began) <= limit) continue;
    result.death = death(beat, fmt::format("no return within {:g} s", limit), true);
    return result;
  }
}

std::string how_it_ended(int status, const std::string& thrown, const std::string& last_words) {
  const std::string words = last_words.empty() ? "" : fmt::format(" ({})", last_words);
  if (!thrown.empty()) return fmt::format("an exception that was not caught: '{}'", thrown);
  if (WIFSIGNALED(status)) {
    return fmt::format("signal {} ({}){}", WTERMSIG(status), strsignal(WTERMSIG(status)), words);
  }
  return fmt::format("an end of the process with status {}{}", WEXITSTATUS(status), words);
}

nlohmann::json json_of(const Measurement& measurement) {
  nlohmann::json timings = nlohmann::json::array();
  for (const KernelTiming& timing : measurement.timings) {
    timings.push_back({timing.kernel, timing.seconds, timing.objection});
  }
  return {{"timings", timings}, {"peak", measurement.peak_flops}};
}

Measurement measurement_of(const nlohmann::json& report) {
  Measurement measurement;
  for (const nlohmann::json& timing : report.at("timings")) {
    measurement.timings.push_back({timing.at(0), timing.at(1), timing.at(2)});
  }
  report.at("peak").get_to(measurement.peak_flops);
  return measurement;
}

nlohmann::json report_of(const std::function<Measurement(Heartbeat&)>& measure, Heartbeat& beat) {
  try {
    return json_of(measure(beat));
  } catch (const InvalidProblem& error) {
    return {{"refused", error.what()}};
  } catch (const std::exception& error) {
    if (beat.began != 0) return {{"thrown", printable(error.what())}};
    if (dynamic_cast<const std::bad_alloc*>(&error) == nullptr) throw;
    return {{"refused", "not enough memory for this problem; make it smaller"}};
  }
}

}  // namespace

TimedApart time_apart(std::vector<std::string> words, double timeout_seconds,
                      const std::function<bool()>& interrupted) {
  const Descriptor shared(memfd_create("attest-times", MFD_CLOEXEC));
  require(shared.get() < 0 || ftruncate(shared.get(), kReport) != 0 ? errno : 0, "make a file");
  const Descriptor errors(memfd_create("attest-stderr", MFD_CLOEXEC));
  require(errors.get() < 0 ? errno : 0, "make a file");
  const SharedHeartbeat memory(shared.get());
  const Heartbeat& beat = *memory.make();
  const pid_t process = start(std::move(words), shared, errors);
  Ended ended(process);
  TimedApart result = look_after(process, beat, timeout_seconds, interrupted);
  if (result.death || result.interrupted) return result;
  const int status = ended.now();
  const nlohmann::json report = nlohmann::json::parse(text_of(shared), nullptr, false);
  if (!report.is_object() || report.contains("thrown")) {
    const std::string thrown = report.is_object() ? report.at("thrown") : "";
    result.death = death(beat, how_it_ended(status, thrown, worker::last_lines(errors, 0)));
    return result;
  }
  if (report.contains("refused")) throw InvalidProblem(report.at("refused"));
  result.measurement = measurement_of(report);
  return result;
}

void report_times(const std::function<Measurement(Heartbeat&)>& measure) {
  struct stat status {};
  if (fstat(kShared, &status) != 0 || !S_ISREG(status.st_mode) || status.st_size != kReport) {
    throw InvalidProblem("timer: is started by attest bench only");
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // not to be left behind where the program is killed
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  const SharedHeartbeat memory(kShared);
  const std::string text = report_of(measure, *memory.get())
                               .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const ssize_t count = pwrite(kShared, text.data(), text.size(), kReport);
  _exit(count == static_cast<ssize_t>(text.size()) ? 0 : 1);  // without the library's destructors
}

}  // namespace attest::certify
