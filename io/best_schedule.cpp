#include "io/best_schedule.hpp"

#include <algorithm>
#include <cstdio>

namespace attest::io {
namespace {

std::string percent_more(Words moved, Words best) {
  const double more =
      100 * (static_cast<double>(moved.value()) / static_cast<double>(best.value()) - 1);
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f%%", more);
  return text;
}

}  // namespace

std::string BestSchedule::to_string() const {
  std::string text;
  for (const Candidate& candidate : candidates) {
    text += candidate.schedule + ": ";
    if (candidate.refusal.empty()) {
      text += std::to_string(moved(candidate).value());
      text += unit == Unit::words ? " words" : " bytes";
      if (&candidate != &best()) text += ", " + percent_more(moved(candidate), moved(best()));
    } else {
      text += "none (" + candidate.refusal + ")";
    }
    text += "\n";
  }
  return text;
}

BestSchedule best_schedule(const ScheduleRegistry& registry, Direction direction,
                           const attest_problem& problem, FastMemory capacity) {
  BestSchedule result;
  for (const auto& family : registry.families()) {
    if (family->direction() != direction ||
        family->kernel_class().products == Products::scores_given) {
      continue;
    }
    Candidate candidate{family->name(), {}, ""};
    try {
      const auto schedule = family->make({family->name(), {}}, problem, capacity);
      candidate.schedule = schedule->spec().to_string();
      candidate.traffic = schedule->closed_form();
    } catch (const NotForProblem&) {
      continue;
    } catch (const CapacityExceeded& error) {
      candidate.refusal = error.what();
    } catch (const CountOverflow& error) {
      candidate.refusal = error.what();
    }
    result.candidates.push_back(std::move(candidate));
  }
  const bool bytes = capacity.words == FastMemory::kUnlimited;
  result.unit = bytes ? BestSchedule::Unit::bytes : BestSchedule::Unit::words;
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
                     return a.refusal.empty() && result.moved(a) < result.moved(b);
                   });
  if (result.candidates.empty() || !result.best().refusal.empty()) {
    std::string lines = result.to_string();
    if (!lines.empty()) lines.pop_back();  // messages end without a line feed
    throw CapacityExceeded("no " + std::string(name(direction)) + " schedule fits:\n" + lines);
  }
  return result;
}

}  // namespace attest::io
