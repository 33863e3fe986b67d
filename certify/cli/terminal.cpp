#include "certify/cli/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>

#include "certify/printable.hpp"
#include "core/text/thousands.hpp"

namespace attest::certify::cli {
namespace {

bool on_terminal() { return isatty(STDERR_FILENO) != 0; }  // where progress is shown

std::string coloured(const char* code, const std::string& text) {
  return colour_wanted() ? fmt::format("\033[{}m{}\033[0m", code, text) : text;
}

}  // namespace

bool colour_wanted() {
  static const bool wanted = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return wanted;
}

std::string good(const std::string& text) { return coloured("32", text); }
std::string bad(const std::string& text) { return coloured("31;1", text); }
std::string warning(const std::string& text) { return coloured("33", text); }
std::string bold(const std::string& text) { return coloured("1", text); }

std::string verdict_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::passed:
      return good("PASSED");
    case Verdict::violated:
      return bad("REFUSED");
    case Verdict::crashed:
      return bad("CRASHED");
    case Verdict::improbable:
      return warning("IMPROBABLE");
    case Verdict::vacuous:
      return warning("NOTHING PROVEN (vacuous)");
    case Verdict::unsupported:
      break;
  }
  return warning("NOTHING PROVEN (unsupported)");
}

std::string indented(const std::string& text, std::size_t spaces) {
  std::istringstream lines(text);
  std::string result;
  for (std::string line; std::getline(lines, line);) {
    result += std::string(spaces, ' ') + line + '\n';
  }
  return result;
}

std::string hanging(const std::string& message, std::size_t spaces) {
  const std::string text = printable_lines(message);
  std::string result;
  for (const char c : text) {
    result += c;
    if (c == '\n') result += std::string(spaces, ' ');
  }
  return result;
}

std::string json_text(const nlohmann::json& object) {
  constexpr int kIndent = 2;
  return object.dump(kIndent, ' ', false, nlohmann::json::error_handler_t::replace);
}

Ticker::Ticker(std::function<std::string(double)> text)
    : text_(std::move(text)), thread_([this] { run(); }) {}

void Ticker::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Ticker::run() {
  const bool terminal = on_terminal();
  const auto every = std::chrono::milliseconds(terminal ? 1000 : 5000);
  const auto begin = std::chrono::steady_clock::now();
  bool shown = false;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, every, [this] { return done_; })) {
    std::fflush(stdout);  // in a log of both, what was printed comes before
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    const std::string line = text_(seconds.count());
    fmt::print(stderr, "{}{}{}", terminal ? "\r\033[K" : "progress: ", line, terminal ? "" : "\n");
    std::fflush(stderr);
    shown = true;
  }
  if (shown && terminal) std::fputs("\r\033[K", stderr);
}

ElapsedLine::ElapsedLine(const std::string& label)
    : ticker_([label](double seconds) { return fmt::format("{}, {:.0f} s", label, seconds); }) {}

ProgressLine::ProgressLine(std::string label)
    : label_(std::move(label)), ticker_([this](double seconds) { return text(seconds); }) {}

void ProgressLine::update(std::uint64_t done, std::uint64_t total) {
  done_ = done;
  total_ = total;
}

std::string ProgressLine::text(double seconds) const {
  const std::uint64_t done = done_, total = std::max<std::uint64_t>(total_, 1);
  if (done == 0) return fmt::format("{} begun, {:.0f} s", label_, seconds);
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total - std::min(done, total)) / rate;
  const std::string counts = fmt::format("{}/{} checks, {:.1f}/s, {:.0f} s left", thousands(done),
                                         thousands(total), rate, left);
  if (!on_terminal()) return label_ + " " + counts;
  constexpr std::uint64_t kWidth = 24;
  const auto filled = static_cast<std::size_t>(kWidth * std::min(done, total) / total);
  return fmt::format("{} [{:<{}}] {}", label_, std::string(filled, '#'), kWidth, counts);
}

}  // namespace attest::certify::cli
