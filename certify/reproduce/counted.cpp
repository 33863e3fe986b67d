#include "certify/reproduce/counted.hpp"

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "io/schedule/schedule_count.hpp"

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
    const io::ScheduleSpec spec = schedule->spec();
    return Counted{spec.to_string(), walked.total_words().value(), walked.peak.words.value(),
                   io::class_of(schedules.find(spec.name), *schedule, problem)};
  } catch (const io::CapacityExceeded&) {
    return std::nullopt;
  } catch (const io::NotForProblem&) {
    return std::nullopt;
  }
}

namespace {

class ArithmeticCount : public io::WordMoveSink {
 public:
  void take(const io::WordMove& move) override {
    using Kind = io::WordMove::Kind;
    const bool sum = move.kind == Kind::accumulate;
    if (sum && move.operands.size() == 2) {
      ++counted.multiply_adds;
    } else if (sum || move.kind == Kind::form || move.kind == Kind::rescale) {
      ++counted.others;
    }
  }

  Arithmetic counted;
};

}  // namespace

Arithmetic count_arithmetic(const io::ScheduleRegistry& schedules, const std::string& text,
                            const Problem& problem) {
  const AbiProblem form(problem, 1);
  ArithmeticCount count;
  schedules.make(text, *form.get(), io::FastMemory{})->record(io::FastMemory{}, count);
  return count.counted;
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

std::int64_t lower_bound(Direction direction, const Problem& problem, std::int64_t fast_words) {
  const auto bound =
      io::greatest(io::bounds_of(direction, problem, io::plain_class(problem), fast_words));
  return bound ? bound->words : 0;
}

Problem square_problem(std::int64_t seqlen, std::int64_t head_dim) {
  return Problem::parse("sq=" + std::to_string(seqlen) + ",d=" + std::to_string(head_dim));
}

std::string paper_tiles(const std::string& schedule, std::int64_t fast_words,
                        std::int64_t head_dim) {
  if (schedule.rfind("square_tiled", 0) == 0) {
    const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(fast_words) / 4));
    return schedule + ":b=" + std::to_string(std::max<std::int64_t>(side, 1));
  }
  const std::int64_t block_k = (fast_words + 4 * head_dim - 1) / (4 * head_dim);
  return schedule + ":bq=" + std::to_string(std::min(block_k, head_dim)) +
         ",bk=" + std::to_string(block_k);
}

std::optional<Crossing> crossing(const std::vector<std::int64_t>& grid, const WordsAt& sooner,
                                 const WordsAt& later) {
  Crossing found;
  for (const std::int64_t fast_words : grid) {
    const auto before = sooner(fast_words), after = later(fast_words);
    const bool no_higher = after && (!before || *after <= *before);
    if (!no_higher) {
      found.last = 0;
      continue;
    }
    if (found.first == 0) found.first = fast_words;
    if (found.last == 0) found.last = fast_words;
  }
  if (found.last == 0 || found.first == grid.front()) return std::nullopt;
  return found;
}

}  // namespace attest::certify
