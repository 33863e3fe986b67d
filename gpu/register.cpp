#include "gpu/register.hpp"

#include "gpu/kernels/flash2.hpp"

namespace attest {

void register_gpu(Registry& registry) { registry.add(&gpu::flash2_kernel()); }

}  // namespace attest
