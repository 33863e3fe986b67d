#pragma once

#include "core/registry.hpp"
#include "io/schedule.hpp"

namespace attest {

/// Adds the CPU kernels that read the lists of a pattern.
void register_sparse(Registry& registry);

/// Adds the schedules of this room that run on any pattern as kernels, sparse/schedule/<name>.
void register_sparse_schedule_kernels(Registry& registry);

/// Adds the schedules of this room: they read lists of a pattern, and take problems with one only.
void register_sparse_schedules(io::ScheduleRegistry& registry);

/// The schedules without lists and those over lists, registered once.
const io::ScheduleRegistry& all_schedules();

}  // namespace attest
