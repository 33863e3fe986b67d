#include "gpu/register.hpp"

#include <algorithm>

#include "gpu/device/device_kernels.hpp"
#include "gpu/device/probe.hpp"
#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/watch.hpp"

namespace attest {

void register_gpu(Registry& registry) {
  register_emulated(registry);
  const gpu::cuda::Device& device = gpu::cuda::device();
  for (const gpu::EmulatedKernel* kernel : gpu::emulated_kernels()) {
    const std::string name = kernel->description().name;
    if (device.present()) {
      registry.add(&gpu::cuda::on_device(*kernel));
    } else {
      registry.add_absent(name + "@device", "needs a CUDA device: " + device.absent_because + "; " +
                                                name + " is the same kernel, emulated");
    }
  }
}

bool is_emulated(std::string_view kernel) {
  const std::vector<const gpu::EmulatedKernel*>& all = gpu::emulated_kernels();
  return std::any_of(all.begin(), all.end(), [&](const gpu::EmulatedKernel* emulated) {
    return kernel == emulated->description().name;
  });
}

const attest_kernel& on_host_tensors(const attest_kernel& kernel) {
  return gpu::cuda::staged(kernel);
}

}  // namespace attest
