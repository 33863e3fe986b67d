#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace attest::certify {

/// Place of a process that times kernels, in memory that it shares with the one that looks after
/// it: the last kernel and call, and when the present call began.
struct Heartbeat {
  static constexpr std::int32_t kLoading = -2, kWarmUp = -1;  // in place of a round

  std::atomic<std::int32_t> kernel{-1}, round{kLoading};
  std::atomic<std::int64_t> began{0};  // by system_nanoseconds; 0 between calls

  void begins(std::size_t of_kernel, int in_round);
  void ends() { began = 0; }
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free, "shared between processes");

/// The heart that beats for one kernel.
struct KernelHeart {
  Heartbeat& beat;
  std::size_t kernel;

  void begins(int round) const { beat.begins(kernel, round); }
  void ends() const { beat.ends(); }
};

}  // namespace attest::certify
