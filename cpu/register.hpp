#pragma once

#include "core/registry.hpp"
#include "io/schedule.hpp"

namespace attest {

/// Adds the CPU kernels.
void register_cpu(Registry& registry);

/// Adds every schedule of this room as a kernel, cpu/schedule/<name>.
void register_cpu_schedule_kernels(Registry& registry);

/// Adds the schedules of this room, whose words can be counted.
void register_cpu_schedules(io::ScheduleRegistry& registry);

/// The schedules of this room alone, registered once.
const io::ScheduleRegistry& cpu_schedules();

}  // namespace attest
