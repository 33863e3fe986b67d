#include "certify/reproduce/counted.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "io/schedule_count.hpp"

namespace attest::certify {

std::optional<Counted> count_words(const io::ScheduleRegistry& schedules, const std::string& text,
                                   const Problem& problem, std::int64_t fast_words) {
  const AbiProblem form(problem, 1);
  const auto capacity = io::FastMemory::of_words(fast_words);
  try {
    const auto schedule = schedules.make(text, *form.get(), capacity);
    const io::Traffic walked = schedule->dry_count(capacity).traffic();
    if (walked != schedule->closed_form()) {
      throw InternalError(text + ": the walk and the closed form differ");
    }
    return Counted{schedule->spec().to_string(), walked.total_words().value(),
                   walked.peak.words.value()};
  } catch (const io::CapacityExceeded&) {
    return std::nullopt;
  }
}

std::vector<std::int64_t> fast_memory_grid(std::int64_t head_dim, int low, int high, int steps) {
  std::vector<std::int64_t> grid;
  for (int k = low * steps; k <= high * steps; ++k) {
    const double theta = std::exp2(static_cast<double>(k) / steps);
    grid.push_back(std::llround(static_cast<double>(head_dim * head_dim) * theta));
  }
  grid.erase(std::unique(grid.begin(), grid.end()), grid.end());
  return grid;
}

std::int64_t lower_bound(io::Direction direction, const Problem& problem, std::int64_t fast_words) {
  const auto bound =
      io::greatest(io::bounds_of(direction, problem, io::plain_class(problem), fast_words));
  return bound ? bound->words : 0;
}

Problem square_problem(std::int64_t seqlen, std::int64_t head_dim) {
  return Problem::parse("sq=" + std::to_string(seqlen) + ",d=" + std::to_string(head_dim));
}

std::optional<std::int64_t> crossover(const io::ScheduleRegistry& schedules, const Problem& problem,
                                      const std::vector<std::string>& first,
                                      const std::vector<std::string>& second, std::int64_t low,
                                      std::int64_t high) {
  const auto least = [&](const std::vector<std::string>& names, std::int64_t fast_words) {
    std::optional<std::int64_t> words;
    for (const std::string& name : names) {
      const auto counted = count_words(schedules, name, problem, fast_words);
      if (counted) words = std::min(words.value_or(counted->words), counted->words);
    }
    return words;
  };
  // A schedule that does not fit moves no fewer words than one that does.
  const auto overtaken = [&](std::int64_t fast_words) {
    const auto after = least(second, fast_words);
    if (!after) return false;
    const auto before = least(first, fast_words);
    return !before || *after <= *before;
  };
  if (overtaken(low) || !overtaken(high)) return std::nullopt;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    (overtaken(middle) ? high : low) = middle;
  }
  return high;
}

}  // namespace attest::certify
