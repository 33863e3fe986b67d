#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/problem.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

namespace attest::certify {

/// A schedule counted in one of several fast memories, or why it does not fit there.
struct SweepRow {
  io::FastMemory capacity;
  std::optional<io::ScheduleCount> count;
  std::optional<io::BestSchedule> best;  // none with --no-best
  std::string refusal;
};

/// Returns a table with a line for each fast memory: words (bytes, where memories are in bytes)
/// moved, the greatest lower bound, their ratio, the tiles, and the schedule of the fewest.
/// [certify/count/count_sweep_test "several fast memories"]
std::string sweep_text(const std::vector<SweepRow>& rows);

/// Returns the counts as an object: certify/schemas/count_sweep.schema.json describes the fields.
nlohmann::json sweep_json(const std::vector<SweepRow>& rows, const Problem& problem,
                          const std::string& inputs, int exit_code);

}  // namespace attest::certify
