#pragma once

#include "core/registry.hpp"
#include "cpu/schedules/register.hpp"

namespace attest {

/// Adds the CPU kernels.
void register_cpu(Registry& registry);

/// Adds every schedule of this room as a kernel, cpu/schedule/<name>.
void register_cpu_schedule_kernels(Registry& registry);

}  // namespace attest
