#include "certify/cli/early_end.hpp"

#include <charconv>
#include <map>

#include "certify/cli/interrupt.hpp"
#include "core/error.hpp"

namespace attest::certify::cli {

double parse_duration(const std::string& option, const std::string& text) {
  const std::map<std::string, double> units{{"", 1},     {"s", 1},    {"m", 60},
                                            {"min", 60}, {"h", 3600}, {"d", 86400}};
  constexpr double kYear = 366 * 86400.0;
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  const auto unit = units.find(std::string(stopped, end));
  const double seconds = unit == units.end() ? 0 : value * unit->second;
  if (error == std::errc() && seconds > 0 && seconds <= kYear) return seconds;
  throw InvalidProblem(option + ": '" + text +
                       "' is no duration above 0 and up to a year; give seconds, or a number with "
                       "s, m, h or d, as in 20m");
}

bool EarlyEnd::out_of_time() const {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - begin_;
  return most_seconds_ && since.count() >= *most_seconds_;
}

bool EarlyEnd::reached() const {
  return interrupted() || (at_failure_ && failed_) || out_of_time();
}

std::string EarlyEnd::cause() const {
  if (interrupted()) return "interrupted";
  return at_failure_ && failed_ ? "ended by --fail-fast" : "ended by --max-time";
}

}  // namespace attest::certify::cli
