#include "gpu/kernels/block_flash2.hpp"
#include "gpu/kernels/emulated_kernel.hpp"
#include "gpu/kernels/flash1.hpp"
#include "gpu/kernels/flash2.hpp"
#include "gpu/kernels/flash2_tensor_core.hpp"
#include "gpu/kernels/key_stationary.hpp"
#include "gpu/kernels/key_stationary_tensor_core.hpp"
#include "gpu/kernels/loss_large.hpp"
#include "gpu/kernels/loss_small.hpp"
#include "gpu/kernels/split_kv.hpp"
#include "gpu/kernels/square_tiled.hpp"
#include "gpu/kernels/square_tiled_bwd.hpp"
#include "gpu/kernels/stored_scores.hpp"
#include "gpu/watch.hpp"

namespace attest::gpu {

const std::vector<const EmulatedKernel*>& emulated_kernels() {
  static const std::vector<const EmulatedKernel*> all{&flash2_kernel(),
                                                      &flash2_16bit_kernel(),
                                                      &flash2_tensor_core_kernel(),
                                                      &standard_kernel(),
                                                      &standard_tensor_core_kernel(),
                                                      &flash1_kernel(),
                                                      &split_kv_kernel(),
                                                      &split_kv_tensor_core_kernel(),
                                                      &square_tiled_kernel(),
                                                      &square_tiled_tensor_core_kernel(),
                                                      &hybrid_kernel(),
                                                      &hybrid_tensor_core_kernel(),
                                                      &block_flash2_kernel(),
                                                      &key_stationary_kernel(),
                                                      &key_stationary_tensor_core_kernel(),
                                                      &square_tiled_bwd_kernel(),
                                                      &square_tiled_bwd_tensor_core_kernel(),
                                                      &loss_large_kernel(),
                                                      &loss_small_kernel()};
  return all;
}

}  // namespace attest::gpu

namespace attest {

void register_emulated(Registry& registry) {
  for (const gpu::EmulatedKernel* kernel : gpu::emulated_kernels()) registry.add(&kernel->abi());
}

}  // namespace attest
