#include "certify/cli/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

namespace attest::certify::cli {
namespace {

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

std::string json_text(const nlohmann::json& object) {
  constexpr int kIndent = 2;
  return object.dump(kIndent, ' ', false, nlohmann::json::error_handler_t::replace);
}

ElapsedLine::ElapsedLine(const std::string& label) {
  if (isatty(STDERR_FILENO) != 0) counter_ = std::thread([this, label] { count(label); });
}

ElapsedLine::~ElapsedLine() {
  if (!counter_.joinable()) return;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    done_ = true;
  }
  changed_.notify_one();
  counter_.join();
}

void ElapsedLine::count(const std::string& label) {
  std::unique_lock<std::mutex> lock(mutex_);
  std::uint64_t seconds = 0;
  while (!changed_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; })) {
    fmt::print(stderr, "\r\033[K{}, {} s", label, ++seconds);
    std::fflush(stderr);
  }
  if (seconds > 0) std::fputs("\r\033[K", stderr);
}

ProgressLine::ProgressLine(std::string label)
    : label_(std::move(label)), begin_(std::chrono::steady_clock::now()) {}

ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (shown_) std::fputs("\r\033[K", stderr);
  shown_ = false;
}

void ProgressLine::update(std::uint64_t done, std::uint64_t total) {
  if (isatty(STDERR_FILENO) == 0 || done == 0) return;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(total - done) / rate;
  constexpr std::uint64_t kWidth = 24;
  const auto filled = static_cast<std::size_t>(kWidth * done / total);
  const std::string line =
      fmt::format("\r\033[K{} [{:<{}}] {}/{} cases, {:.1f}/s, {:.0f} s left", label_,
                  std::string(filled, '#'), kWidth, done, total, rate, left);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace attest::certify::cli
