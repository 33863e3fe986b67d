#include "io/schedule/best_schedule.hpp"

#include <algorithm>
#include <cstdio>

#include "core/text/thousands.hpp"

namespace attest::io {
namespace {

// Nothing where the best moves nothing.
std::string percent_more(Words moved, Words best) {
  if (best == Words(0)) return "";
  const double more =
      100 * (static_cast<double>(moved.value()) / static_cast<double>(best.value()) - 1);
  char text[32];
  std::snprintf(text, sizeof text, ", %+.1f%%", more);
  return text;
}

// The family's name with tiles left open, and with every choice that is searched.
std::vector<ScheduleSpec> open_specs(const ScheduleFamily& family, const attest_problem& problem) {
  std::vector<ScheduleSpec> specs{{family.name(), {}}};
  if (problem.mask.boolean == nullptr) return specs;
  for (const ScheduleParameter& parameter : family.parameters()) {
    if (parameter.search != ScheduleParameter::Search::every_choice_of_masks) continue;
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

bool leaves_lse_out(const ScheduleFamily& family) {
  return family.direction() == Direction::forward && family.kernel_class().lse == LseOutput::none;
}

// The family's schedule of a spelling, or why there is none.
Candidate candidate_of(const ScheduleFamily& family, const ScheduleSpec& spec,
                       const attest_problem& problem, FastMemory capacity) {
  Candidate candidate{family.name(), {}, "", {}, leaves_lse_out(family)};
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
      const auto amount = [this](const Candidate& of) {
        return thousands(moved(of).value()) + (unit == Unit::words ? " words" : " bytes");
      };
      text += amount(candidate);
      if (&candidate != &best()) text += percent_more(moved(candidate), moved(best()));
      if (candidate.leaves_lse_out) text += ", LSE not written";
      for (const Candidate& other : candidate.others) {
        text += "; " + other.schedule + ": " + amount(other);
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
      for (const ScheduleSpec& spec : open_specs(*family, problem)) {
        choices.push_back(candidate_of(*family, spec, problem, capacity));
      }
    } catch (const NotForProblem&) {
      continue;
    }
    std::stable_sort(choices.begin(), choices.end(), before);
    Candidate chosen = choices.front();
    for (auto other = choices.begin() + 1; other != choices.end(); ++other) {
      if (other->refusal.empty()) chosen.others.push_back(std::move(*other));
    }
    result.candidates.push_back(std::move(chosen));
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
