#include "certify/worker/conduct/sent_signals.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>

namespace attest::certify::worker {
namespace {

// Process and signal in one word, 0 for none, as a handler can leave it. Whoever finds no room
// loses a note, not a signal.
using Note = std::atomic<std::uint64_t>;
static_assert(Note::is_always_lock_free, "written by a signal handler");
constexpr int kSignalBits = 8;
std::array<Note, 64> notes;

bool is_child(pid_t process) {
  siginfo_t info{};
  return process > 0 &&
         waitid(P_PID, static_cast<id_t>(process), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

void note(pid_t worker, int signal) {
  const auto word =
      static_cast<std::uint64_t>(worker) << kSignalBits | static_cast<std::uint64_t>(signal);
  for (Note& note : notes) {
    std::uint64_t none = 0;
    if (note.compare_exchange_strong(none, word)) return;
  }
}

}  // namespace

bool sent_by_worker(int signal, const siginfo_t& info) {
  if (info.si_code > 0) return false;  // by the kernel of the system: a key at the terminal
  const int error = errno;
  const pid_t sender = info.si_pid;
  // A worker leads its group.
  const pid_t worker = is_child(sender) ? sender : getpgid(sender);
  const bool found = is_child(worker);
  if (found) note(worker, signal);
  errno = error;
  return found;
}

std::optional<int> take_signal_of(pid_t worker) {
  // Unblocking has this thread look for signals that wait for any thread of the process.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (Note& note : notes) {
    std::uint64_t word = note.load();
    if (word >> kSignalBits != static_cast<std::uint64_t>(worker)) continue;
    if (note.compare_exchange_strong(word, 0)) {
      return static_cast<int>(word & ((1u << kSignalBits) - 1));
    }
  }
  return std::nullopt;
}

}  // namespace attest::certify::worker
