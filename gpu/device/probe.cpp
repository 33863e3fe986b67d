#include "gpu/device/probe.hpp"

#include <cuda_runtime_api.h>

namespace attest::gpu::cuda {
namespace {

Device found() {
  Device device;
  cudaDriverGetVersion(&device.driver_version);
  cudaRuntimeGetVersion(&device.runtime_version);
  int count = 0;
  cudaDeviceProp properties{};
  cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count == 0) status = cudaErrorNoDevice;
  if (status == cudaSuccess) status = cudaGetDeviceProperties(&properties, 0);
  if (device.driver_version == 0) {  // CUDA's own words blame its version
    device.absent_because = "no CUDA driver is installed";
    return device;
  }
  if (status != cudaSuccess) {
    device.absent_because =
        std::string(cudaGetErrorName(status)) + " (" + cudaGetErrorString(status) + ")";
    return device;
  }
  device.name = std::string(properties.name) + " (sm_" + std::to_string(properties.major) +
                std::to_string(properties.minor) + ")";
  return device;
}

}  // namespace

const Device& device() {
  static const Device device = found();
  return device;
}

}  // namespace attest::gpu::cuda
