#include "gpu/register.hpp"

#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/key_stationary.hpp"
#include "gpu/kernels/loss_large.hpp"
#include "gpu/kernels/loss_small.hpp"
#include "gpu/kernels/square_tiled_bwd.hpp"

namespace attest {

void register_gpu(Registry& registry) {
  registry.add(&gpu::flash2_kernel());
  registry.add(&gpu::key_stationary_kernel());
  registry.add(&gpu::square_tiled_bwd_kernel());
  registry.add(&gpu::loss_large_kernel());
  registry.add(&gpu::loss_small_kernel());
}

}  // namespace attest
