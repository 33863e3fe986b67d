#pragma once

#include "core/registry.hpp"

namespace attest {

/// Adds the CPU kernels that read the lists of a pattern.
void register_sparse(Registry& registry);

}  // namespace attest
