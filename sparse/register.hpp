#pragma once

#include "core/registry.hpp"
#include "sparse/schedules/register.hpp"

namespace attest {

/// Adds the CPU kernels that read the lists of a pattern.
void register_sparse(Registry& registry);

/// Adds the schedules of this room that run on any pattern as kernels, sparse/schedule/<name>.
void register_sparse_schedule_kernels(Registry& registry);

}  // namespace attest
