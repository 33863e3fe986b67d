#pragma once

#include <cstdint>

#include "gpu/device/require.cuh"
#include "gpu/kernels/grid.hpp"

/// Launches on a CUDA device.
namespace attest::gpu::cuda {

struct LaunchShape {
  std::int64_t blocks = 0;
  int threads = 0;
  std::int64_t dynamic_shared_bytes = 0;
};

/// The alignment of ATTEST_DYNAMIC_SHARED, to which static shared memory before it is rounded up.
inline constexpr std::int64_t kDynamicSharedAlignment = 1024;

/// Whether the current device takes the launch: its grid, and the kernel's static shared memory
/// beside the dynamic one.  [gpu/device/device_test "static shared memory counts"]
template <class Argument>
bool fits(void (*kernel)(Argument), const LaunchShape& shape) {
  int device = 0, limit = 0;
  cudaFuncAttributes attributes{};
  require(cudaGetDevice(&device), "current device");
  require(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "shared memory of a block");
  require(cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(kernel)),
          "a kernel's attributes");
  const auto before = static_cast<std::int64_t>(attributes.sharedSizeBytes);
  const std::int64_t aligned =
      (before + kDynamicSharedAlignment - 1) / kDynamicSharedAlignment * kDynamicSharedAlignment;
  return shape.blocks <= kMostBlocks && aligned + shape.dynamic_shared_bytes <= limit;
}

/// `kernel<<<shape, stream>>>(argument)`; no blocks, no launch. Throws DeviceError; what fails
/// while the kernel runs is seen when the stream is waited for.
template <class Argument>
void launch(const std::string& name, void (*kernel)(Argument), const LaunchShape& shape,
            cudaStream_t stream, const Argument& argument) {
  if (shape.blocks == 0) return;
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(shape.dynamic_shared_bytes)),
          name + ": shared memory");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(shape.blocks));
  config.blockDim = dim3(static_cast<unsigned>(shape.threads));
  config.dynamicSmemBytes = static_cast<std::size_t>(shape.dynamic_shared_bytes);
  config.stream = stream;
  require(cudaLaunchKernelEx(&config, kernel, argument), name);
}

}  // namespace attest::gpu::cuda
