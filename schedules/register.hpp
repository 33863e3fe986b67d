#pragma once

#include "core/registry.hpp"
#include "io/schedule/schedule.hpp"

namespace attest {

/// Adds the schedules that need no list of a pattern, the loss gradient's among them.
void register_dense_schedules(io::ScheduleRegistry& registry);

/// Adds the schedules that read lists of a pattern, and take problems with one only.
void register_list_schedules(io::ScheduleRegistry& registry);

/// Returns the schedules without lists, registered once.
const io::ScheduleRegistry& dense_schedules();

/// Returns the schedules without lists and those over lists, registered once.
const io::ScheduleRegistry& all_schedules();

/// Adds every schedule without lists as a kernel, cpu/schedule/<name>.
void register_dense_schedule_kernels(Registry& registry);

/// Adds the schedules over lists that run on any pattern as kernels, sparse/schedule/<name>.
void register_list_schedule_kernels(Registry& registry);

}  // namespace attest
