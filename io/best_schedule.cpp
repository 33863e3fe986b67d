#include "io/best_schedule.hpp"

#include <algorithm>
#include <cstdio>

namespace attest::io {
namespace {

std::string percent_more(Words words, Words best) {
  const double more =
      100 * (static_cast<double>(words.value()) / static_cast<double>(best.value()) - 1);
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
      const Words words = candidate.traffic.total_words();
      text += std::to_string(words.value()) + " words";
      if (&candidate != &best()) {
        text += ", " + percent_more(words, best().traffic.total_words());
      }
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
    if (family->direction() != direction) continue;
    Candidate candidate{family->name(), {}, ""};
    try {
      const auto schedule = family->make({family->name(), {}}, problem, capacity);
      candidate.schedule = schedule->spec().to_string();
      candidate.traffic = schedule->closed_form();
    } catch (const CapacityExceeded& error) {
      candidate.refusal = error.what();
    }
    result.candidates.push_back(std::move(candidate));
  }
  const bool bytes = capacity.words == FastMemory::kUnlimited;
  const auto moved = [bytes](const Candidate& candidate) {
    return bytes ? candidate.traffic.total_bytes() : candidate.traffic.total_words();
  };
  std::stable_sort(result.candidates.begin(), result.candidates.end(),
                   [&](const Candidate& a, const Candidate& b) {
                     if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
                     return a.refusal.empty() && moved(a) < moved(b);
                   });
  if (result.candidates.empty() || !result.best().refusal.empty()) {
    throw CapacityExceeded("no " + std::string(name(direction)) + " schedule fits:\n" +
                           result.to_string());
  }
  return result;
}

}  // namespace attest::io
