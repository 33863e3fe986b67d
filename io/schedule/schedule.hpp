#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/direction.hpp"
#include "core/error.hpp"
#include "io/bounds/kernel_class.hpp"
#include "io/machine/meter.hpp"
#include "io/recording/word_move.hpp"

/// Schedules as values: named, printed, parsed, validated, counted.
namespace attest::io {

/// The spelling of a schedule: `flash2:bq=64,bk=32`, or `flash2` with the tiles left open.
struct ScheduleSpec {
  std::string name;
  std::vector<std::pair<std::string, std::string>> parameters;

  std::string to_string() const;

  /// Requires: name[:key=value[,key=value…]], no key twice. Else throws InvalidProblem, which
  /// begins with `what` was spelled.  [io/schedule/schedule_test "spelling"]
  static ScheduleSpec parse(std::string_view text, const std::string& what = "schedule");

  friend bool operator==(const ScheduleSpec&, const ScheduleSpec&) = default;
};

/// A schedule with all its tiles, for one problem.
class Schedule {
 public:
  virtual ~Schedule() = default;

  virtual ScheduleSpec spec() const = 0;

  /// Tells whether all rows of an index enter and leave together with these tiles on this problem,
  /// where the family's class does not say so of every schedule.  [schedules/whole_rows_test]
  virtual bool moves_whole_rows() const { return false; }

  /// Words and bytes of all heads, by formula.  [schedules/forward_test "closed forms"]
  virtual Traffic closed_form() const = 0;

  /// The same by walking through the schedule without data. Throws CapacityExceeded when a tile
  /// does not fit.
  virtual Meter dry_count(FastMemory capacity) const = 0;

  /// Runs on data and counts. Requires the arguments of the schedule's direction, for the problem
  /// it was made for; else throws InvalidProblem.
  virtual Meter count(FastMemory capacity, const attest_forward_args& args) const;
  virtual Meter count(FastMemory capacity, const attest_backward_args& args) const;
  virtual Meter count(FastMemory capacity, const attest_loss_args& args) const;

  /// Runs without data and writes down every word it moves or forms; the words counted. Masked
  /// elements of a tile that is visited are formed too, as they are on data.
  ///
  /// Requires: a problem of one batch entry and one head. Else throws InvalidProblem.
  /// [schedules/replay_test "recordings"]
  /// Cost:     linear in the number of multiply-adds.
  virtual Meter record(FastMemory capacity, WordMoveSink& sink) const;

  /// Runs on data without counting, on problem.num_threads threads: the bits that count() gives.
  /// [schedules/native_test]
  virtual void run(const attest_forward_args& args) const;
  virtual void run(const attest_backward_args& args) const;
  virtual void run(const attest_loss_args& args) const;
};

/// A parameter of a spelling: a tile extent, or with choices one of those words.
struct ScheduleParameter {
  /// Treatment of choices by best_schedule: it leaves the first, where another computes something
  /// else, or tries every one on problems with a boolean mask, where choices differ in words alone,
  /// and without a mask in nothing.
  enum class Search : std::uint8_t { first_choice, every_choice_of_masks };

  std::string name;
  std::vector<std::string> choices;
  Search search = Search::first_choice;
};

/// A problem that a family has no schedules for, whatever the fast memory: not the caller's mistake
/// where families are tried one after the other.
struct NotForProblem : InvalidProblem {
  using InvalidProblem::InvalidProblem;
};

/// All schedules of one name.
class ScheduleFamily {
 public:
  virtual ~ScheduleFamily() = default;

  virtual std::string name() const = 0;
  /// One line for people.
  virtual std::string summary() const = 0;
  /// Returns the paper and the algorithm that it comes from: "Dao 2023, Algorithm 1".
  virtual std::string source() const { return "this project's own"; }
  /// Returns what the bounds may take for granted of the family's schedules, whatever the problem.
  virtual KernelClass kernel_class() const = 0;
  virtual Direction direction() const = 0;
  /// The parameters a spelling may give.
  virtual std::vector<ScheduleParameter> parameters() const = 0;

  /// Returns, for schedules over lists of a pattern, the name of those that visit the same tiles
  /// without lists, for problems that have no pattern; empty for other schedules.
  virtual std::string without_lists() const { return ""; }

  /// The schedule of that spelling. Tiles left open are searched for the fewest words that fit in
  /// fast memory, which is no proof that others do not move fewer. Requires: known parameters,
  /// positive tiles, a problem the family takes (else NotForProblem), and fast memory in which some
  /// tiles fit (else the message names the least that works). Else throws InvalidProblem. The
  /// problem must outlive the schedule.
  virtual std::unique_ptr<Schedule> make(const ScheduleSpec& spec, const attest_problem& problem,
                                         FastMemory capacity) const = 0;
};

/// The schedules known to a program.
class ScheduleRegistry {
 public:
  /// Requires: a name that is not taken. Else throws InvalidProblem.
  void add(std::unique_ptr<const ScheduleFamily> family);

  /// Throws InvalidProblem with the nearest name when there is none.
  /// [io/schedule/schedule_test "unknown schedule names"]
  const ScheduleFamily& find(std::string_view name) const;

  /// Parses, finds and makes.
  std::unique_ptr<Schedule> make(std::string_view text, const attest_problem& problem,
                                 FastMemory capacity) const;

  const std::vector<std::unique_ptr<const ScheduleFamily>>& families() const { return families_; }

 private:
  std::vector<std::unique_ptr<const ScheduleFamily>> families_;
};

/// Returns what to count, and run, in place of a schedule over lists on a problem without a
/// pattern: its parameters but those that the other does not know; any other schedule as it is.
/// Throws InvalidProblem for an unknown name.  [io/schedule/schedule_test "without lists"]
ScheduleSpec spec_without_lists(const ScheduleRegistry& schedules, const ScheduleSpec& spec);

}  // namespace attest::io
