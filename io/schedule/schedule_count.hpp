#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "io/bounds/bound.hpp"
#include "io/schedule/schedule.hpp"

/// Words that a schedule moves, beside what every kernel of its class must move.
namespace attest::io {

/// All bounds of the direction for a problem. M is fast_words.
///
/// Requires: a valid problem, fast_words >= 1, and for the loss gradient at least two rows. Else
/// throws InvalidProblem.
std::vector<Bound> bounds_of(Direction direction, const Problem& problem, const KernelClass& kernel,
                             std::int64_t fast_words);

/// Returns what the bounds may take for granted of a schedule of the family on this problem: the
/// family's class, what its tiles add to it, and a shortcut when the scale is 0.
/// [io/schedule/schedule_count_test "class"]
KernelClass class_of(const ScheduleFamily& family, const Schedule& schedule,
                     const Problem& problem);

/// The class with nothing declared: its lower bounds hold for every kernel of K1 to K6.
KernelClass undeclared(const KernelClass& kernel);

/// One schedule counted on one problem.
struct ScheduleCount {
  std::string schedule;  // its spelling, tiles included
  Direction direction = Direction::forward;
  FastMemory capacity;
  Traffic counted;      // by walking through the schedule
  Traffic closed_form;  // by formula
  Meter::Blocks blocks;
  std::int64_t bound_words = 0;      // M of the bounds: the capacity, in the narrowest words
  std::int64_t narrowest_bytes = 4;  // width of the narrowest word that moves
  KernelClass kernel;
  std::vector<Bound> bounds;            // for its class
  std::optional<Bound> lower;           // the greatest lower bound for its class
  std::optional<Bound> lower_of_every;  // the greatest without its declarations

  bool closed_form_equal() const { return counted == closed_form; }

  /// Words moved over the greatest lower bound; nothing if no bound applies or it is 0.
  std::optional<double> ratio() const;

  /// Lists what cannot be if schedule, formula and bounds are right: the closed form differs, or
  /// fewer words move than a lower bound. Empty when all is well.
  /// [io/schedule/schedule_count_test "faults"]
  std::vector<std::string> faults() const;
};

/// Counts the schedule dry and evaluates the bounds for the whole capacity.
///
/// Requires: a schedule of the family, made for this problem, that fits (else CapacityExceeded);
/// capacity in words or in bytes, not neither. Else throws InvalidProblem.
/// Cost:     that of Schedule::dry_count, and of pattern_degrees with a mask.
ScheduleCount count_schedule(const ScheduleFamily& family, const Schedule& schedule,
                             const Problem& problem, FastMemory capacity);

}  // namespace attest::io
