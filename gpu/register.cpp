#include "gpu/register.hpp"

#include "gpu/kernels/emulated_kernel.hpp"

namespace attest {

void register_gpu(Registry& registry) {
  for (const gpu::EmulatedKernel* kernel : gpu::emulated_kernels()) registry.add(&kernel->abi());
}

}  // namespace attest
