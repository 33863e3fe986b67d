#pragma once

#include <string>

#include "core/registry.hpp"

namespace attest {

/// Adds the kernels of this room. Throws InvalidProblem where ATTEST_CPU_TARGET names no target.
void register_cpu(Registry& registry);

/// Returns the target of Highway whose instructions the kernels use, like AVX2.
const std::string& cpu_target();

}  // namespace attest
