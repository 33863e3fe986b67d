#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "gpu/device/require.cuh"
#include "gpu/kernels/grid.hpp"

/// Launches on a CUDA device.
namespace attest::gpu::cuda {

/// The alignment of ATTEST_DYNAMIC_SHARED, to which static shared memory before it is rounded up.
inline constexpr std::int64_t kDynamicSharedAlignment = 1024;

/// The most dynamic shared memory that a block of the kernel can have beside its static one on the
/// current device.  [gpu/device/device_test "static shared memory counts"]
template <class... Arguments>
std::int64_t most_dynamic_shared_bytes(void (*kernel)(Arguments...)) {
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
  return limit - aligned;
}

/// Whether the current device takes the launch: its grid and its shared memory.
template <class... Arguments>
bool fits(void (*kernel)(Arguments...), const BlockLine& line) {
  return line.blocks <= kMostBlocks &&
         line.dynamic_shared_bytes <= most_dynamic_shared_bytes(kernel);
}

/// `kernel<<<line, stream>>>(arguments...)`; no blocks, no launch. Throws DeviceError; what fails
/// while the kernel runs is seen when the stream is waited for.
template <class... Arguments>
void launch(const std::string& name, void (*kernel)(Arguments...), const BlockLine& line,
            cudaStream_t stream, const Arguments&... arguments) {
  if (line.blocks == 0) return;
  // Of the kernel, not of the launch: a smaller number would fail another thread's launch.
  require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(most_dynamic_shared_bytes(kernel))),
          name + ": shared memory");
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(line.blocks));
  config.blockDim = dim3(static_cast<unsigned>(line.lanes));
  config.dynamicSmemBytes = static_cast<std::size_t>(line.dynamic_shared_bytes);
  config.stream = stream;
  require(cudaLaunchKernelEx(&config, kernel, arguments...), name);
}

/// `all(launch)` calls launch(name, line, kernel, arguments...) for one launch after another: they
/// are put on the stream if the device takes each of them, else none is and this is
/// ATTEST_UNSUPPORTED.
template <class All>
attest_status launch_all(void* stream, const All& all) {
  bool taken = true;
  all([&](const std::string&, const BlockLine& line, auto* kernel, const auto&...) {
    taken = taken && fits(kernel, line);
  });
  if (!taken) return ATTEST_UNSUPPORTED;
  all([&](const std::string& name, const BlockLine& line, auto* kernel, const auto&... arguments) {
    launch(name, kernel, line, static_cast<cudaStream_t>(stream), arguments...);
  });
  return ATTEST_OK;
}

}  // namespace attest::gpu::cuda
