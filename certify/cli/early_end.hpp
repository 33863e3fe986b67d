#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

namespace attest::certify::cli {

/// Reads a duration like 90, 90s, 20m or 1.5h in seconds. Throws InvalidProblem otherwise, and for
/// one that is not above 0 or longer than a year.  [certify/cli/tests/campaign_test]
double parse_duration(const std::string& option, const std::string& text);

/// Ends campaigns early: a signal, the time that they may take, a first failure.
class EarlyEnd {
 public:
  EarlyEnd(std::optional<double> most_seconds, bool at_failure)
      : most_seconds_(most_seconds), at_failure_(at_failure) {}

  /// Tells whether an end was asked for.
  bool reached() const;

  /// Returns what asked for it: "interrupted", "ended by --max-time", "ended by --fail-fast".
  std::string cause() const;

  void note_failure() { failed_ = true; }

 private:
  bool out_of_time() const;

  std::optional<double> most_seconds_;
  bool at_failure_;
  std::atomic<bool> failed_{false};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
};

}  // namespace attest::certify::cli
