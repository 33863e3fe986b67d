#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "core/verdict.hpp"

namespace attest::certify::cli {

/// Whether standard output is a terminal that wants colour (NO_COLOR unset).
bool colour_wanted();

/// The text in green, red, yellow or bold where colour is wanted, else as it is.
std::string good(const std::string& text);
std::string bad(const std::string& text);
std::string warning(const std::string& text);
std::string bold(const std::string& text);

/// A verdict as a person reads it: PASSED, REFUSED, …
std::string verdict_text(Verdict verdict);

/// A line on standard error with done/total, rate and time left; silent when that is no terminal.
class ProgressLine {
 public:
  explicit ProgressLine(std::string label);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void update(std::uint64_t done, std::uint64_t total);
  void clear();

 private:
  std::string label_;
  std::chrono::steady_clock::time_point begin_;
  bool shown_ = false;
};

}  // namespace attest::certify::cli
