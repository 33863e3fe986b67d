#pragma once

#include <string>
#include <vector>

#include "io/schedule/schedule.hpp"

namespace attest::io {

/// A family's schedule with the tiles that suit it best, or why it has none.
struct Candidate {
  std::string schedule;  // its spelling; the family's name when it has none
  Traffic traffic;
  std::string refusal;            // empty: it fits
  std::vector<Candidate> others;  // the family's with other choices of those searched, if they fit
  bool leaves_lse_out = false;    // a forward pass of q words less than one that writes LSE
};

/// The schedules of one direction for a problem, the fewest words first (bytes, with a capacity in
/// bytes), those that do not fit last.
struct BestSchedule {
  enum class Unit : std::uint8_t { words, bytes };

  std::vector<Candidate> candidates;
  Unit unit = Unit::words;  // what is compared

  const Candidate& best() const { return candidates.front(); }

  /// Returns what a candidate moves, in the unit.
  Words moved(const Candidate& candidate) const {
    return unit == Unit::words ? candidate.traffic.total_words() : candidate.traffic.total_bytes();
  }

  /// One line for each: what it moves and how much more that is than the best, or why it has no
  /// schedule.  [schedules/best_schedule_test "explained"]
  /// [schedules/walks/lists/row_order_test "searched"]
  std::string to_string() const;
};

/// Searches all families of the direction, their tiles, and the choices that change nothing but
/// words (ScheduleParameter::Search). A family whose count overflows has no schedule. Families that
/// take the weights as an input (K2) are left out: what wrote the weights is not in their count. So
/// are families that are not for the problem (NotForProblem).
///
/// Requires: at least one schedule that fits. Else throws InvalidProblem with every family's
/// reason.  [schedules/best_schedule_test, schedules/walks/lists/row_order_test "searched"]
BestSchedule best_schedule(const ScheduleRegistry& registry, Direction direction,
                           const attest_problem& problem, FastMemory capacity);

}  // namespace attest::io
