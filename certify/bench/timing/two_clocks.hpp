#pragma once

#include <cstdint>
#include <string>

namespace attest::certify {

/// A clock in nanoseconds since some moment: that of std::chrono::steady_clock, and one that no
/// function of a library is asked for but the operating system itself, and that nobody adjusts.
std::int64_t steady_nanoseconds();
std::int64_t system_nanoseconds();

/// Times calls by one clock while another looks on: who replaces the clock that measures, or slows
/// it down, is seen by the other. The second clock is read between two readings of the first on
/// either side of a call, so that no interruption can make the two disagree.
/// [certify/bench/timing/two_clocks_test]
class TwoClocks {
 public:
  using Clock = std::int64_t (*)();
  explicit TwoClocks(Clock first = steady_nanoseconds, Clock second = system_nanoseconds)
      : first_(first), second_(second) {}

  void start();

  /// Seconds since `start`, by the first clock.
  double stop();

  /// "" or how the clocks disagree over all calls, by more than one per cent: clocks that are
  /// adjusted differ by a tenth of that at most, and less changes no comparison.
  std::string disagreement() const;

 private:
  Clock first_, second_;
  std::int64_t before_ = 0, begin_ = 0, second_begin_ = 0;
  std::int64_t least_ = 0, most_ = 0, by_second_ = 0;  // of all calls
};

}  // namespace attest::certify
