#pragma once

#include <sys/types.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <vector>

#include "certify/worker/conduct/fault.hpp"

namespace attest::certify::worker {

/// State that the operating system keeps about this process and the thread that makes the calls:
/// blocked signals, interval timers, resource limits, the mask of file modes, nice value,
/// scheduling policy and allowed processors. Timers of timer_create cannot be listed. A few
/// microseconds.
class Settings {
 public:
  /// As they are now.
  static Settings now();

  /// How `later` differs from this, the gravest first. Processors are not compared where a variable
  /// has OpenMP bind threads, which it does in its first parallel region.
  /// [certify/worker/isolation_test "every misbehaviour has its own finding"]
  std::optional<Fault> change(const Settings& later) const;

 private:
  static constexpr std::size_t kTimers = 3, kLimits = 16, kMostSignals = 65;
  struct Limit {
    std::uint64_t soft = 0, hard = 0;
    bool operator==(const Limit&) const = default;
  };

  std::bitset<kMostSignals> blocked_;
  std::array<bool, kTimers> armed_{};
  std::array<Limit, kLimits> limits_{};
  mode_t file_mask_ = 0;
  int nice_ = 0, policy_ = 0;
  std::vector<unsigned char> processors_;  // one bit each; empty: not compared
};

}  // namespace attest::certify::worker
