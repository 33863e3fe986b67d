#pragma once

#include "core/registry.hpp"

namespace attest {

/// Adds the CPU kernels.
void register_cpu(Registry& registry);

}  // namespace attest
