#pragma once

#include "io/schedule.hpp"

namespace attest {

/// Adds the schedules of this room: they read lists of a pattern, and take problems with one only.
void register_sparse_schedules(io::ScheduleRegistry& registry);

}  // namespace attest
