#include "certify/worker/surroundings.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cfenv>
#include <climits>
#include <clocale>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <string_view>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "certify/worker/protocol.hpp"

extern char** environ;

namespace attest::certify::worker {
namespace {

std::atomic<bool> fork_seen{false};

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

bool has_children() {
  siginfo_t info{};
  if (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 || errno != ECHILD) return true;
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return usage.ru_maxrss != 0;  // one that has been waited for
}

std::string closed_descriptors() {
  std::string closed;
  for (int descriptor = 0; descriptor <= kArena; ++descriptor) {
    if (fcntl(descriptor, F_GETFD) >= 0) continue;
    closed += (closed.empty() ? "" : ", ") + std::to_string(descriptor);
  }
  return closed;
}

std::string printed_text() {
  std::fflush(stdout);
  struct stat status {};
  if (fstat(STDOUT_FILENO, &status) != 0 || status.st_size == 0) return "";
  char text[64];
  const ssize_t count = pread(STDOUT_FILENO, text, sizeof text, 0);
  std::string shown;
  for (ssize_t k = 0; k < count; ++k) {
    if (text[k] == '\n') break;
    shown += text[k] >= ' ' && text[k] != 0x7f ? text[k] : '?';
  }
  return std::to_string(status.st_size) + " bytes, beginning with '" + shown + "'";
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

}  // namespace

std::vector<Surroundings::SignalAction> Surroundings::signal_actions() {
  std::vector<SignalAction> actions(NSIG);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) != 0) continue;  // one of the C library's own
    actions[static_cast<std::size_t>(signal)] = {
        reinterpret_cast<std::uint64_t>(action.sa_sigaction), action.sa_flags};
  }
  return actions;
}

void Surroundings::loaded() {
  environment_ = environment();
  actions_ = signal_actions();
}

Surroundings::Surroundings(std::uint64_t data_limit_bytes)
    : data_limit_bytes_(data_limit_bytes),
      pid_(getpid()),
      rounding_(std::fegetround()),
      control_word_(floating_point_control()),
      locale_(current_locale()),
      directory_(current_directory()) {
  pthread_atfork([] { fork_seen = true; }, nullptr, nullptr);
}

Surroundings::Change Surroundings::changes() const {
  if (getpid() != pid_) _exit(0);
  Change change;
  const auto note = [&change](bool found, Disturbance bit, const std::string& text) {
    if (!found) return;
    if (change.bits == 0) change.text = text;
    change.bits |= bit;
  };
  const std::string closed = closed_descriptors();
  note(!closed.empty(), kClosedDescriptor, closed);
  note(fork_seen || has_children(), kForked, "");
  const int rounding = std::fegetround();
  note(rounding != rounding_, kFloatingPoint,
       "rounding mode " + std::to_string(rounding_) + " became " + std::to_string(rounding));
  note(floating_point_control() != control_word_, kFloatingPoint,
       "denormals or exceptions are handled otherwise");
  const std::string locale = current_locale(), directory = current_directory();
  note(locale != locale_, kLocale, "'" + locale_ + "' became '" + locale + "'");
  note(directory != directory_, kDirectory, "'" + directory_ + "' became '" + directory + "'");
  const std::vector<std::string> variables = environment();
  if (variables != environment_) {
    note(true, kEnvironment,
         "variables were changed: " + changed_variables(environment_, variables));
  }
  const std::vector<SignalAction> actions = signal_actions();
  const auto other = std::mismatch(actions.begin(), actions.end(), actions_.begin());
  if (other.first != actions.end()) {
    const auto signal = static_cast<int>(other.first - actions.begin());
    note(true, kSignalHandler,
         "what signal " + std::to_string(signal) + " (" + strsignal(signal) + ") does was changed");
  }
  const std::string printed = printed_text();
  note(!printed.empty(), kPrinted, printed);
  note(data_limit_bytes_ > 0 && near_limit(data_bytes(), data_limit_bytes_), kOutOfMemory, "");
  return change;
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
