#include "certify/cli/interrupt.hpp"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <string_view>

#include "certify/worker/conduct/sent_signals.hpp"

namespace attest::certify::cli {
namespace {

std::atomic<bool> asked{false}, asks{false};
static_assert(std::atomic<bool>::is_always_lock_free, "used by a signal handler");

// SIGHUP: the terminal or the connection is gone.
bool is_interrupt(int signal) { return signal == SIGINT || signal == SIGTERM || signal == SIGHUP; }

// A check of a long problem may take minutes.
void say_what_follows() {
  constexpr std::string_view kText =
      "\nattest: ends after the checks that run; a second signal ends it at once\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kText.data(), kText.size());
}

void handle(int signal, siginfo_t* info, void*) {
  if (worker::sent_by_worker(signal, *info)) return;
  if (asks && is_interrupt(signal) && !asked.exchange(true)) return say_what_follows();
  ::signal(signal, SIG_DFL);
  raise(signal);
}

}  // namespace

InterruptGuard::InterruptGuard(OnInterrupt what) {
  asks = what == OnInterrupt::ask;
  struct sigaction action {};
  action.sa_sigaction = handle;
  action.sa_flags = static_cast<int>(SA_RESTART | SA_SIGINFO);
  sigemptyset(&action.sa_mask);
  std::transform(std::begin(kSignals), std::end(kSignals), before_, [&action](int signal) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    // Under nohup SIGHUP is ignored, and stays so.
    const bool asked_for = asks && is_interrupt(signal) && signal != SIGHUP;
    if (asked_for || before.sa_handler == SIG_DFL) sigaction(signal, &action, nullptr);
    return before;
  });
}

InterruptGuard::~InterruptGuard() {
  for (std::size_t k = 0; k < std::size(kSignals); ++k)
    sigaction(kSignals[k], &before_[k], nullptr);
}

bool interrupted() { return asked; }

}  // namespace attest::certify::cli
