#pragma once

#include "io/schedule.hpp"

namespace attest {

/// Adds the schedules of sparse/schedules: they read lists of a pattern, and take problems with one
/// only.
void register_sparse_schedules(io::ScheduleRegistry& registry);

/// The schedules without lists and those over lists, registered once.
const io::ScheduleRegistry& all_schedules();

}  // namespace attest
