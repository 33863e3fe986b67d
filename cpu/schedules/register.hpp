#pragma once

#include "io/schedule.hpp"

namespace attest {

/// Adds the schedules of cpu/schedules, whose words can be counted.
void register_cpu_schedules(io::ScheduleRegistry& registry);

/// These alone, registered once.
const io::ScheduleRegistry& cpu_schedules();

}  // namespace attest
