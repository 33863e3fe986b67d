#pragma once

#include <string>
#include <vector>

#include "core/sparse_operands/sparse_operands.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

/// The schedules of sparse inputs by name, for `attest count --inputs`.
namespace attest::sparse {

/// Description of a schedule for people: its name, direction, parameters and a line.
struct InputSchedule {
  std::string name;
  Direction direction;
  std::vector<std::string> parameters;
  std::string summary;
  std::string source;  // paper and algorithm
};

/// sparse_flash (bq, bk) and stored_support (bq, bk, bv) forward, sparse_flash_bwd (bq, bk, pq, pk,
/// bv) and stored_support_bwd (bq, bk, bv, bd) backward.
const std::vector<InputSchedule>& input_schedules();

/// A schedule on sparse inputs beside the others of its direction.
struct InputCount {
  io::ScheduleCount count;
  io::BestSchedule best;  // tiles of powers of two from 4 on, or whole extents
};

/// Counts a schedule by walking through it, index words included, and evaluates lower_bounds or
/// backward_lower_bounds. Tiles left open are those of the fewest words among powers of two from 4
/// on and whole extents.
///
/// Requires: a known name and parameters, positive tiles, tiles that fit, valid operands, fast
///           memory of at least a word. Else throws InvalidProblem.
/// [sparse/inputs/schedules/input_schedules_test "counted beside bounds"]
/// Cost:     up to a few thousand closed forms, each linear in the pairs of the support.
InputCount count_sparse_inputs(const io::ScheduleSpec& spec, const SparseOperands& operands,
                               io::FastMemory capacity);

/// The words of each schedule of a direction with its best tiles, for several fast memories: the
/// closed forms are evaluated once.  [sparse/inputs/schedules/input_schedules_test "words against
/// memory"]
class InputWords {
 public:
  /// Tiles tried have sides tile_sides(extent, 4, to_an_octave).
  InputWords(const SparseOperands& operands, Direction direction, int to_an_octave = 1);

  struct Choice {
    io::ScheduleSpec spec;
    io::Traffic traffic;
  };

  /// The fewest words that fit; nothing where no tiles do. Requires: a name of the direction. Else
  /// throws InvalidProblem.
  const Choice* fewest(const std::string& name, io::FastMemory capacity) const;

  /// The least words of fast memory in which some tiles work.
  std::int64_t least_memory(const std::string& name) const;

  /// All tiles tried.
  const std::vector<Choice>& choices(const std::string& name) const;

 private:
  std::vector<std::pair<std::string, std::vector<Choice>>> all_;
};

}  // namespace attest::sparse
