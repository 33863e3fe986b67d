#include "certify/worker/conduct/surroundings.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <iostream>
#include <iterator>
#include <string_view>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "certify/worker/process/protocol.hpp"

extern char** environ;

namespace attest::certify::worker {
namespace {

// Rounding, denormals and masked exceptions; the sticky exception flags may change.
std::uint64_t floating_point_control() {
#if defined(__x86_64__)
  constexpr unsigned kStickyFlags = 0x3f;
  std::uint16_t x87 = 0;
  __asm__ volatile("fnstcw %0" : "=m"(x87));
  return std::uint64_t{_mm_getcsr() & ~kStickyFlags} << 16 | x87;
#else
  return 0;
#endif
}

std::string current_locale() {
  const char* text = std::setlocale(LC_ALL, nullptr);
  return text == nullptr ? "" : text;
}

std::string current_directory() {
  char path[PATH_MAX];
  return getcwd(path, sizeof path) == nullptr ? "" : path;
}

// The library's std::cout is this program's. Where others stand in for `stdout`
// (certify/cli/streams) it has a buffer beside theirs.
void flush_output() {
  if (std::streambuf* const text = std::cout.rdbuf()) text->pubsync();
  std::fflush(stdout);
  std::fflush(stderr);
}

off_t bytes_printed() {
  struct stat status {};
  return fstat(STDOUT_FILENO, &status) == 0 ? status.st_size : 0;
}

// Digits of the sixth number of /proc/PID/statm, in pages. No allocation: a handler calls this.
std::uint64_t data_pages(const char* statm) {
  const int file = open(statm, O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  char text[256];
  const ssize_t count = read(file, text, sizeof text);
  close(file);
  int field = 0;
  std::uint64_t pages = 0;
  for (ssize_t k = 0; k < count && field < 6; ++k) {
    constexpr int kData = 5;
    if (text[k] < '0' || text[k] > '9') {
      ++field;
    } else if (field == kData) {
      pages = 10 * pages + static_cast<std::uint64_t>(text[k] - '0');
    }
  }
  return pages;
}

// Sorted. OpenMP of LLVM enters a mark of its own with its first parallel region.
std::vector<std::string> environment() {
  constexpr std::string_view kMarkOfOpenMp = "__KMP_REGISTERED_LIB_";
  std::vector<std::string> variables;
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable) {
    if (std::string_view(*variable).substr(0, kMarkOfOpenMp.size()) == kMarkOfOpenMp) continue;
    variables.emplace_back(*variable);
  }
  std::sort(variables.begin(), variables.end());
  return variables;
}

// Names of variables that are not as they were, for values may be secrets.
std::string changed_variables(const std::vector<std::string>& before,
                              const std::vector<std::string>& now) {
  std::vector<std::string> changed;
  std::set_symmetric_difference(before.begin(), before.end(), now.begin(), now.end(),
                                std::back_inserter(changed));
  std::string names;
  std::string_view last;
  for (const std::string& variable : changed) {
    const std::string_view name = std::string_view(variable).substr(0, variable.find('='));
    if (name == last) continue;
    last = name;
    names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

// Returns the number that the next descriptor gets: the lowest that is free. -1 when none is.
int next_descriptor() {
  const int next = fcntl(kSocket, F_DUPFD_CLOEXEC, 0);
  if (next >= 0) close(next);
  return next;
}

// Flags that a user could notice. The C library marks every action that it sets (SA_RESTORER), also
// one that is put back as it was; without a handler all but two flags are without effect.
int observable_flags(int signal, const struct sigaction& action) {
  constexpr int kRestorer = 0x04000000, kOfChildren = SA_NOCLDSTOP | SA_NOCLDWAIT;
  const bool handled = (action.sa_flags & SA_SIGINFO) != 0 ||
                       (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
  if (handled) return action.sa_flags & ~kRestorer;
  return signal == SIGCHLD ? action.sa_flags & kOfChildren : 0;
}

}  // namespace

std::vector<Surroundings::SignalAction> Surroundings::signal_actions() {
  std::vector<SignalAction> actions(NSIG);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;  // one of the C library's own
    const auto handler = reinterpret_cast<std::uint64_t>(action.sa_sigaction);
    actions[static_cast<std::size_t>(signal)] = {handler, observable_flags(signal, action)};
  }
  return actions;
}

Surroundings::Files Surroundings::files() {
  Files files(kLastDescriptor + 1);
  for (int descriptor = 0; descriptor <= kLastDescriptor; ++descriptor) {
    struct stat status {};
    if (fstat(descriptor, &status) != 0) continue;
    files[static_cast<std::size_t>(descriptor)] = File{status.st_dev, status.st_ino};
  }
  return files;
}

void Surroundings::loaded() {
  flush_output();
  printed_ = bytes_printed();
  const Files now = files();
  for (std::size_t descriptor = 0; descriptor < now.size(); ++descriptor) {
    if (now[descriptor] != files_[descriptor]) files_[descriptor].reset();
  }
  loaded_control_word_ = floating_point_control();
  locale_ = current_locale();
  directory_ = current_directory();
  environment_ = environment();
  children_.forgive();
  actions_ = signal_actions();
  settings_ = Settings::now();
  most_threads_ = thread_count();
  next_descriptor_ = next_descriptor();
}

Surroundings::Surroundings(std::uint64_t data_limit_bytes)
    : data_limit_bytes_(data_limit_bytes),
      pid_(getpid()),
      rounding_(std::fegetround()),
      control_word_(floating_point_control()),
      locale_(current_locale()),
      directory_(current_directory()),
      files_(files()) {
  Children::watch();
}

int Surroundings::most_growths() {
  constexpr int kUsual = 64;
  return kUsual + static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN));
}

bool Surroundings::threads_without_end() {
  const std::uint64_t threads = thread_count();
  if (threads <= most_threads_) return false;
  most_threads_ = threads;
  // A thread of a pool sleeps by now; one that still works meets the retired memory meanwhile.
  constexpr timespec kMeanwhile{0, 5'000'000};
  nanosleep(&kMeanwhile, nullptr);
  return ++growths_ > most_growths();
}

bool Surroundings::descriptors_without_end() {
  const int next = next_descriptor();
  if (next <= next_descriptor_) return false;
  next_descriptor_ = next;
  return ++descriptor_growths_ > most_growths();
}

std::optional<Fault> Surroundings::changed_signal() const {
  const std::vector<SignalAction> actions = signal_actions();
  const auto other = std::mismatch(actions.begin(), actions.end(), actions_.begin());
  if (other.first == actions.end()) return std::nullopt;
  const auto signal = static_cast<int>(other.first - actions.begin());
  return Fault{FaultKind::signal_handler, "what signal " + std::to_string(signal) + " (" +
                                              strsignal(signal) + ") does was changed"};
}

std::string Surroundings::lost() const {
  std::string lost;
  for (int descriptor = kSocket; descriptor <= kLastDescriptor; ++descriptor) {
    if (files_[static_cast<std::size_t>(descriptor)]) continue;
    lost += (lost.empty() ? "" : ", ") + std::to_string(descriptor);
  }
  return lost;
}

// One that another file took the place of was closed too (dup2).
std::string Surroundings::closed_descriptors() const {
  const Files now = files();
  std::string closed;
  for (std::size_t descriptor = 0; descriptor < now.size(); ++descriptor) {
    if (!files_[descriptor] || now[descriptor] == files_[descriptor]) continue;
    closed += (closed.empty() ? "" : ", ") + std::to_string(descriptor);
  }
  return closed;
}

std::string Surroundings::printed_text() const {
  flush_output();
  const off_t bytes = bytes_printed() - printed_;
  if (!files_[STDOUT_FILENO] || bytes <= 0) return "";
  char text[64];
  const ssize_t count = pread(STDOUT_FILENO, text, sizeof text, printed_);
  std::string shown;
  for (ssize_t k = 0; k < count; ++k) {
    if (text[k] == '\n') break;
    shown += text[k] >= ' ' && text[k] != 0x7f ? text[k] : '?';
  }
  return std::to_string(bytes) + " bytes, beginning with '" + shown + "'";
}

std::optional<Fault> Surroundings::change(std::uint32_t may_change) {
  const auto applies = [may_change](std::uint32_t rule) { return (may_change & rule) == 0; };
  if (getpid() != pid_) _exit(0);
  if (data_limit_bytes_ > 0 && near_limit(data_bytes(), data_limit_bytes_)) {
    return Fault{FaultKind::memory, "nearly all memory below the limit was allocated"};
  }
  if (const std::string closed = closed_descriptors(); !closed.empty()) {
    return Fault{FaultKind::closed_descriptor,
                 "descriptors that it had not opened were closed (" + closed + ")"};
  }
  if (applies(ATTEST_MAY_START_PROCESSES) && children_.started()) {
    return Fault{FaultKind::fork, "a process was started"};
  }
  if (threads_without_end()) {
    return Fault{FaultKind::left_thread, "the number of threads has grown " +
                                             std::to_string(growths_) + " times, to " +
                                             std::to_string(most_threads_) + ", the last time"};
  }
  if (descriptors_without_end()) {
    return Fault{FaultKind::left_descriptor,
                 "descriptors were left open by " + std::to_string(descriptor_growths_) +
                     " calls, numbers to " + std::to_string(next_descriptor_ - 1) +
                     ", the last time"};
  }
  if (const int rounding = std::fegetround(); rounding != rounding_) {
    return Fault{FaultKind::floating_point, "rounding mode " + std::to_string(rounding_) +
                                                " became " + std::to_string(rounding)};
  }
  if (const std::uint64_t now = floating_point_control(); now != control_word_) {
    return Fault{
        FaultKind::floating_point,
        std::string("denormals or exceptions are handled otherwise") +
            (now == loaded_control_word_
                 ? ", since the library was loaded (-ffast-math and -Ofast do that when it "
                   "is linked with them: compile with them, link without),"
                 : "")};
  }
  const auto became = [](const std::string& before, const std::string& now) {
    return "'" + before + "' became '" + now + "'";
  };
  if (const std::string now = current_locale();
      applies(ATTEST_MAY_CHANGE_LOCALE) && now != locale_) {
    return Fault{FaultKind::locale, became(locale_, now)};
  }
  if (const std::string now = current_directory(); now != directory_) {
    return Fault{FaultKind::directory, became(directory_, now)};
  }
  if (const std::vector<std::string> variables = environment();
      applies(ATTEST_MAY_CHANGE_ENVIRONMENT) && variables != environment_) {
    return Fault{FaultKind::environment,
                 "variables were changed: " + changed_variables(environment_, variables)};
  }
  if (auto changed = applies(ATTEST_MAY_CHANGE_SIGNALS) ? changed_signal() : std::nullopt) {
    return changed;
  }
  if (auto changed = settings_.change(Settings::now())) return changed;
  if (const std::string printed = printed_text(); !printed.empty()) {
    return Fault{FaultKind::printed, printed};
  }
  return std::nullopt;
}

// Links of the folder: two of its own and one for each thread.
std::uint64_t thread_count() {
  struct stat tasks {};
  return stat("/proc/self/task", &tasks) == 0 ? tasks.st_nlink - 2 : 0;
}

std::uint64_t data_bytes() {
  static const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return data_pages("/proc/self/statm") * page;
}

std::uint64_t data_bytes_of(pid_t process) {
  const std::string path = "/proc/" + std::to_string(process) + "/statm";
  return data_pages(path.c_str()) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace attest::certify::worker
