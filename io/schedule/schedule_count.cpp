#include "io/schedule/schedule_count.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "io/bounds/dense/backward.hpp"
#include "io/bounds/dense/forward.hpp"
#include "io/bounds/dense/loss.hpp"
#include "io/bounds/extent.hpp"
#include "io/bounds/patterns/backward_pattern.hpp"
#include "io/bounds/patterns/pattern.hpp"

namespace attest::io {
namespace {

std::int64_t words_of(FastMemory capacity, std::int64_t narrowest_bytes) {
  if (capacity.words != FastMemory::kUnlimited) return capacity.words;
  if (capacity.bytes != FastMemory::kUnlimited) {
    return words_of_bytes(capacity.bytes, narrowest_bytes);
  }
  throw InvalidProblem("fast memory: unlimited, and no bound holds there; give words or bytes");
}

// Facts of a problem that the bounds need, whatever the kernel.
struct Subject {
  Direction direction;
  std::int64_t rows, depth;
  Extent extent;
  std::optional<PatternDegrees> pattern;  // with a mask: without one it adds nothing
};

Subject subject_of(Direction direction, const Problem& problem) {
  Subject subject{direction, problem.seqlen_q, problem.head_dim_qk, {}, std::nullopt};
  if (direction == Direction::loss_gradient) return subject;
  subject.extent = extent_of(problem);
  const bool masked = subject.extent.pairs + subject.extent.rows_one != subject.extent.all_pairs;
  if (masked) subject.pattern = pattern_degrees(problem);
  return subject;
}

std::vector<Bound> bounds_of(const Subject& subject, const KernelClass& kernel,
                             std::int64_t fast_words) {
  switch (subject.direction) {
    case Direction::forward: {
      std::vector<Bound> bounds = forward_bounds(subject.extent, kernel, fast_words);
      if (!subject.pattern) return bounds;
      for (Bound& bound : pattern_bounds(*subject.pattern, kernel, fast_words)) {
        bounds.push_back(std::move(bound));
      }
      bounds.push_back(forward_other_rows(subject.extent, kernel, fast_words, bounds));
      return bounds;
    }
    case Direction::backward: {
      std::vector<Bound> bounds = backward_bounds(subject.extent, kernel, fast_words);
      if (subject.pattern) {
        for (Bound& bound : backward_pattern_bounds(*subject.pattern, kernel, fast_words)) {
          bounds.push_back(std::move(bound));
        }
      }
      bounds.push_back(backward_single_pass(subject.extent, kernel, fast_words, bounds));
      if (subject.pattern) {
        bounds.push_back(backward_other_rows(subject.extent, kernel, fast_words, bounds));
      }
      bounds.push_back(backward_saved_outputs(subject.extent, kernel, fast_words, bounds));
      return bounds;
    }
    case Direction::loss_gradient:
      return loss_bounds({subject.rows, subject.depth}, kernel, fast_words);
  }
  throw InternalError("Direction out of range");
}

std::string text(const Traffic& traffic) {
  return std::to_string(traffic.reads.words.value()) + " + " +
         std::to_string(traffic.writes.words.value()) + " words, peak " +
         std::to_string(traffic.peak.words.value());
}

}  // namespace

std::vector<Bound> bounds_of(Direction direction, const Problem& problem, const KernelClass& kernel,
                             std::int64_t fast_words) {
  return bounds_of(subject_of(direction, problem), kernel, fast_words);
}

KernelClass class_of(const ScheduleFamily& family, const Schedule& schedule,
                     const Problem& problem) {
  KernelClass kernel = family.kernel_class();
  if (schedule.moves_whole_rows()) kernel.movement = RowMovement::whole_index;
  const Products products = plain_class(problem).products;
  if (products != Products::standard) kernel.products = products;
  return kernel;
}

KernelClass undeclared(const KernelClass& kernel) {
  const KernelClass plain;
  KernelClass result = kernel;
  result.evaluation = plain.evaluation;
  result.movement = plain.movement;
  result.saved = plain.saved;
  return result;
}

std::optional<double> ScheduleCount::ratio() const {
  if (!lower || lower->words == 0) return std::nullopt;
  return static_cast<double>(counted.total_words().value()) / static_cast<double>(lower->words);
}

std::vector<std::string> ScheduleCount::faults() const {
  std::vector<std::string> found;
  if (!closed_form_equal()) {
    found.push_back(schedule + ": counted " + text(counted) + ", but its closed form is " +
                    text(closed_form));
  }
  for (const Bound& bound : bounds) {
    if (!bound.is_lower_bound() || counted.total_words() >= bound.words) continue;
    found.push_back(schedule + ": " + std::to_string(counted.total_words().value()) +
                    " words, fewer than the lower bound " + bound.to_string());
  }
  return found;
}

ScheduleCount count_schedule(const ScheduleFamily& family, const Schedule& schedule,
                             const Problem& problem, FastMemory capacity) {
  ScheduleCount count;
  count.schedule = schedule.spec().to_string();
  count.direction = family.direction();
  count.capacity = capacity;
  count.narrowest_bytes =
      std::min<std::int64_t>(static_cast<std::int64_t>(size_bytes(problem.dtype)), sizeof(float));
  count.bound_words = words_of(capacity, count.narrowest_bytes);
  const Meter meter = schedule.dry_count(capacity);
  count.counted = meter.traffic();
  count.blocks = meter.blocks();
  count.closed_form = schedule.closed_form();
  count.kernel = class_of(family, schedule, problem);
  const Subject subject = subject_of(count.direction, problem);
  count.bounds = bounds_of(subject, count.kernel, count.bound_words);
  count.lower = greatest(count.bounds);
  const KernelClass every = undeclared(count.kernel);
  count.lower_of_every =
      every == count.kernel ? count.lower : greatest(bounds_of(subject, every, count.bound_words));
  return count;
}

}  // namespace attest::io
