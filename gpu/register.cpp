#include "gpu/register.hpp"

#include "gpu/device/device_kernels.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/watch.hpp"

namespace attest {

void register_gpu(Registry& registry) {
  register_emulated(registry);
  const gpu::cuda::Device& device = gpu::cuda::device();
  if (device.present()) {
    registry.add(&gpu::cuda::flash2_on_device());
  } else {
    registry.add_absent("gpu/flash2@device", "needs a CUDA device: " + device.absent_because +
                                                 "; gpu/flash2 is the same kernel, emulated");
  }
}

const attest_kernel& on_host_tensors(const attest_kernel& kernel) {
  return gpu::cuda::staged(kernel);
}

}  // namespace attest
