#include "certify/worker/process/forked.hpp"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>

#include "certify/worker/conduct/surroundings.hpp"
#include "certify/worker/process/children.hpp"
#include "certify/worker/process/protocol.hpp"

namespace attest::certify::worker {
namespace {

// Libraries stop threads without work before a fork, and start them again with the next work
// (OpenBLAS); no other stays behind one by accident.
void stop_idle_threads() {
  const pid_t probe = fork();
  if (probe == 0) _exit(0);
  while (probe > 0 && waitpid(probe, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool has_own_files() {
  DIR* const files = opendir("/proc/self/fd");
  if (files == nullptr) return true;
  int others = 0;
  while (const dirent* file = readdir(files)) {
    if (file->d_name[0] != '.' && std::stoi(file->d_name) > kLastDescriptor) ++others;
  }
  closedir(files);
  return others != 1;  // that of the folder
}

bool shares_memory(const Control* control) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    unsigned long begin = 0;
    char rights[5] = "";
    if (std::sscanf(line.c_str(), "%lx-%*x %4s", &begin, rights) != 2) return true;
    if (std::strcmp(rights + 3, "s") != 0 || rights[1] != 'w') continue;
    if (begin != reinterpret_cast<unsigned long>(control)) return true;
  }
  return false;
}

bool has_timers() {
  for (const auto which : {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF}) {
    itimerval left{};
    if (getitimer(which, &left) != 0 || timerisset(&left.it_value)) return true;
  }
  std::ifstream others("/proc/self/timers");  // of timer_create
  return others.peek() != std::ifstream::traits_type::eof();
}

// The C library keeps the number of each thread there.
int* place_of_thread_number() {
  int* place = nullptr;
  const bool known = prctl(PR_GET_TID_ADDRESS, &place) == 0 && place != nullptr;
  return known && *place == syscall(SYS_gettid) ? place : nullptr;
}

bool can_be_forked(const Control* control) {
  stop_idle_threads();
  return thread_count() == 1 && !has_children() && !has_own_files() && !shares_memory(control) &&
         !has_timers() && place_of_thread_number() != nullptr;
}

// Forks a child of the certifier, which waits for it as for any worker. The C library's own `fork`
// cannot; it also runs what libraries do about other threads, of which there are none.
pid_t fork_sibling() {
  void* robust = nullptr;
  std::size_t size = 0;
  syscall(SYS_get_robust_list, 0, &robust, &size);
  constexpr unsigned long kFlags =
      CLONE_PARENT | CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID | SIGCHLD;
  // Machines differ in which of the last two it is; the other is not looked at.
  int* const number = place_of_thread_number();
  const auto child =
      static_cast<pid_t>(syscall(SYS_clone, kFlags, nullptr, nullptr, number, number));
  if (child == 0) syscall(SYS_set_robust_list, robust, size);
  return child;
}

// Tells whether there is a request; its descriptors are above those of a worker.
bool receive(Given& given) {
  alignas(cmsghdr) char ancillary[CMSG_SPACE(sizeof given)];
  char byte = 0;
  iovec text{&byte, 1};
  msghdr message{};
  message.msg_iov = &text;
  message.msg_iovlen = 1;
  message.msg_control = ancillary;
  message.msg_controllen = sizeof ancillary;
  ssize_t count = 0;
  do {
    count = recvmsg(kSocket, &message, MSG_CMSG_CLOEXEC);
  } while (count < 0 && errno == EINTR);
  const cmsghdr* const head = CMSG_FIRSTHDR(&message);
  if (count != 1 || head == nullptr || head->cmsg_len != CMSG_LEN(sizeof given)) return false;
  std::memcpy(&given, CMSG_DATA(head), sizeof given);
  return true;
}

void take(const Given& given) {
  setpgid(0, 0);
  int descriptor = STDOUT_FILENO;
  for (const int own : given) dup2(own, descriptor++);
}

void close_all(const Given& given) {
  for (const int own : given) close(own);
}

// Holds signals back: no handler of the program changes what is forked from, and no fork has one
// that is held.
class HeldSignals {
 public:
  HeldSignals() {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before_);
  }
  ~HeldSignals() { sigprocmask(SIG_SETMASK, &before_, nullptr); }
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;

 private:
  sigset_t before_{};
};

// Returns in every fork, and never in this process.
void serve_forks(Control& control) {
  const HeldSignals held;
  while (true) {
    Given given{};
    if (send(kSocket, "r", 1, MSG_NOSIGNAL) != 1 || !receive(given)) _exit(0);
    const pid_t child = fork_sibling();
    if (child == 0) {
      take(given);
      close_all(given);
      return;
    }
    control.forked = child < 0 ? -errno : child;
    close_all(given);
  }
}

}  // namespace

void fork_when_asked() {
  Control* const control = map_control();
  if (control == nullptr) return;
  const bool asked = control->layout == layout_of_messages() && control->forks == Forks::asked;
  const bool serves = asked && can_be_forked(control);
  if (asked) control->forks = serves ? Forks::served : Forks::none;
  if (serves) serve_forks(*control);
  munmap(control, kControlBytes);
}

}  // namespace attest::certify::worker
