#include "gpu/register.hpp"

#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/key_stationary.hpp"

namespace attest {

void register_gpu(Registry& registry) {
  registry.add(&gpu::flash2_kernel());
  registry.add(&gpu::key_stationary_kernel());
}

}  // namespace attest
