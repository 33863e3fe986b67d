#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "certify/count/count_trace.hpp"
#include "core/problem.hpp"
#include "io/schedule/best_schedule.hpp"
#include "io/schedule/schedule_count.hpp"

namespace attest::certify {

/// Returns the count and the bounds beside it, without the choice of best_schedule: fields of
/// certify/schemas/count.schema.json.
nlohmann::json schedule_count_json(const io::ScheduleCount& count, const Problem& problem);

/// A count and what caches made of it as an object: certify/schemas/count.schema.json describes the
/// fields. `inputs` is empty for dense Q, K and V; without `best` that field is null.
/// [certify/count/count_test]
nlohmann::json count_json(const io::ScheduleCount& count,
                          const std::optional<io::BestSchedule>& best,
                          const std::vector<Replayed>& replays, const Problem& problem,
                          int exit_code, const std::string& inputs = "");

}  // namespace attest::certify
