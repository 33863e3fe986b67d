#pragma once

namespace attest::certify::cli {

/// While it lives, the first SIGINT or SIGTERM asks for an end at the next check instead of ending
/// the program; the second ends it.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;
};

/// Whether an end was asked for.
bool interrupted();

}  // namespace attest::certify::cli
