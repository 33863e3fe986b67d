#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>

#include "core/verdict.hpp"

namespace attest::certify::cli {

/// Tells whether standard output is a terminal that wants colour (NO_COLOR unset).
bool colour_wanted();

/// The text in green, red, yellow or bold where colour is wanted, else as it is.
std::string good(const std::string& text);
std::string bad(const std::string& text);
std::string warning(const std::string& text);
std::string bold(const std::string& text);

/// A verdict as a person reads it: PASSED, REFUSED, …
std::string verdict_text(Verdict verdict);

/// Every line with so many spaces before it; the last needs no end of line.
std::string indented(const std::string& text, std::size_t spaces);

/// A message as the terminal takes it, its lines after the first with so many spaces before them: a
/// function in Python fails with a traceback.
std::string hanging(const std::string& message, std::size_t spaces);

/// The object as indented JSON text; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::json& object);

/// Shows on standard error, while it lives, that work goes on: on a terminal one line that changes,
/// elsewhere a line "progress: …" every few seconds, so that no long work is silent. Work that is
/// done sooner shows nothing.
class Ticker {
 public:
  explicit Ticker(std::function<std::string(double seconds)> text);
  ~Ticker() { stop(); }
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;

  /// Ends it and wipes its line.
  void stop();

 private:
  void run();

  std::function<std::string(double)> text_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool done_ = false;
  std::thread thread_;
};

/// Counts the seconds from the first on.  [certify/cli/tests/streams_test]
class ElapsedLine {
 public:
  explicit ElapsedLine(const std::string& label);

 private:
  Ticker ticker_;
};

/// Shows done/total, rate and time left, on a terminal with a bar. [certify/cli/tests/streams_test]
class ProgressLine {
 public:
  explicit ProgressLine(std::string label);
  void update(std::uint64_t done, std::uint64_t total);
  void clear() { ticker_.stop(); }

 private:
  std::string text(double seconds) const;

  std::string label_;
  std::atomic<std::uint64_t> done_{0}, total_{0};
  Ticker ticker_;
};

}  // namespace attest::certify::cli
