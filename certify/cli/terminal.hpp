#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

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

/// The object as indented JSON text; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& object);

/// A line on standard error that counts the seconds from the first on while it lives; silent when
/// that is no terminal.
class ElapsedLine {
 public:
  explicit ElapsedLine(const std::string& label);
  ~ElapsedLine();
  ElapsedLine(const ElapsedLine&) = delete;
  ElapsedLine& operator=(const ElapsedLine&) = delete;

 private:
  void count(const std::string& label);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread counter_;
};

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
