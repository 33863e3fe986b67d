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

// The family's name with tiles left open, and with every choice that is searched.
std::vector<ScheduleSpec> open_specs(const ScheduleFamily& family) {
  std::vector<ScheduleSpec> specs{{family.name(), {}}};
  for (const ScheduleParameter& parameter : family.parameters()) {
    if (parameter.search != ScheduleParameter::Search::every_choice) continue;
    std::vector<ScheduleSpec> longer;
    for (const ScheduleSpec& spec : specs) {
      for (const std::string& choice : parameter.choices) {
        longer.push_back(spec);
        longer.back().parameters.emplace_back(parameter.name, choice);
      }
    }
    specs = std::move(longer);
  }
  return specs;
}

// The family's schedule of a spelling, or why there is none.
Candidate candidate_of(const ScheduleFamily& family, const ScheduleSpec& spec,
                       const attest_problem& problem, FastMemory capacity) {
  Candidate candidate{family.name(), {}, ""};
  try {
    const auto schedule = family.make(spec, problem, capacity);
    candidate.traffic = schedule->closed_form();
    candidate.schedule = schedule->spec().to_string();
  } catch (const CapacityExceeded& error) {
    candidate.refusal = error.what();
  } catch (const CountOverflow& error) {
    candidate.refusal = error.what();
  }
  return candidate;
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
  const bool bytes = capacity.words == FastMemory::kUnlimited;
  result.unit = bytes ? BestSchedule::Unit::bytes : BestSchedule::Unit::words;
  const auto before = [&](const Candidate& a, const Candidate& b) {
    if (a.refusal.empty() != b.refusal.empty()) return a.refusal.empty();
    return a.refusal.empty() && result.moved(a) < result.moved(b);
  };
  for (const auto& family : registry.families()) {
    if (family->direction() != direction ||
        family->kernel_class().products == Products::scores_given) {
      continue;
    }
    std::vector<Candidate> choices;
    try {
      for (const ScheduleSpec& spec : open_specs(*family)) {
        choices.push_back(candidate_of(*family, spec, problem, capacity));
      }
    } catch (const NotForProblem&) {
      continue;
    }
    result.candidates.push_back(*std::min_element(choices.begin(), choices.end(), before));
  }
  std::stable_sort(result.candidates.begin(), result.candidates.end(), before);
  if (result.candidates.empty() || !result.best().refusal.empty()) {
    std::string lines = result.to_string();
    if (!lines.empty()) lines.pop_back();  // messages end without a line feed
    throw CapacityExceeded("no " + std::string(name(direction)) + " schedule fits:\n" + lines);
  }
  return result;
}

}  // namespace attest::io
