#include "certify/cli/terminal.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

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
