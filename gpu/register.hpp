#pragma once

#include "core/registry.hpp"

namespace attest {

/// Adds the CUDA kernels as the emulation runs them, gpu/<name>.
void register_gpu(Registry& registry);

}  // namespace attest
