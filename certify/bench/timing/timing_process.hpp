#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "certify/bench/timing/timing.hpp"

/// Process that times kernels, whose end is a finding and not that of the program.
namespace attest::certify {

/// A kernel that ended the process, and the call in which it did.
struct Death {
  std::size_t kernel = 0;  // of those that were to be timed
  bool hung = false;
  std::string how;  // "signal 11 (Segmentation fault) in timed call 3"
};

/// Outcome of a process that timed kernels: a measurement, unless it died or an end was asked for.
struct TimedApart {
  Measurement measurement;
  std::optional<Death> death;
  bool interrupted = false;
};

/// Starts this program again with words that have it call `report_times`. A call that takes longer
/// than the limit ends the process; nothing that it prints is shown, but the last lines of its
/// standard error where it dies. Throws InvalidProblem with the reason where kernels cannot be
/// timed, InternalError where it ended outside of any.
TimedApart time_apart(std::vector<std::string> words, double timeout_seconds,
                      const std::function<bool()>& interrupted);

/// The whole work of such a process. Throws InvalidProblem where another has started it.
[[noreturn]] void report_times(const std::function<Measurement(Heartbeat&)>& measure);

}  // namespace attest::certify
