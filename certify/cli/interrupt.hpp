#pragma once

#include <signal.h>

#include <cstdint>
#include <iterator>

namespace attest::certify::cli {

/// Effect of the first SIGINT, SIGTERM or SIGHUP: ask for an end at the next check, or end the
/// program as it would without a guard.
enum class OnInterrupt : std::uint8_t { ask, end };

/// While it lives, the first SIGINT, SIGTERM or SIGHUP does what it is told to; the second ends the
/// program. SIGHUP stays ignored where nohup has it so. One that a kernel sends from its worker
/// becomes a finding and does nothing else; the same holds of the other signals here.
class InterruptGuard {
 public:
  explicit InterruptGuard(OnInterrupt what);
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

 private:
  static constexpr int kSignals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};
  struct sigaction before_[std::size(kSignals)];
};

/// Tells whether an end was asked for.
bool interrupted();

}  // namespace attest::certify::cli
