#include "gpu/kernels/kernels.hpp"
#include "gpu/watch.hpp"

namespace attest::gpu {

const std::vector<const EmulatedKernel*>& emulated_kernels() {
  static const std::vector<const EmulatedKernel*> all{
#define ATTEST_CUDA_KERNEL(name, ...) &name##_kernel(),
#include "gpu/kernels/kernels.def"
#undef ATTEST_CUDA_KERNEL
  };
  return all;
}

}  // namespace attest::gpu

namespace attest {

void register_emulated(Registry& registry) {
  for (const gpu::EmulatedKernel* kernel : gpu::emulated_kernels()) registry.add(&kernel->abi());
}

}  // namespace attest
