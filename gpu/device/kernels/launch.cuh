#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "core/abi/attest_kernel.h"
#include "gpu/device/kernels/require.cuh"
#include "gpu/kernels/tiles/grid.hpp"

/// Launches on a CUDA device.
namespace attest::gpu::cuda {

/// The alignment of ATTEST_DYNAMIC_SHARED, to which static shared memory before it is rounded up.
inline constexpr std::int64_t kDynamicSharedAlignment = 1024;

/// The most dynamic shared memory that a block of the kernel can have beside its static one on the
/// current device; asked once by each thread.
/// [gpu/device/device_test "static shared memory counts"]
inline std::int64_t most_dynamic_shared_bytes(const void* kernel) {
  static thread_local std::map<std::pair<int, const void*>, std::int64_t> known;
  int device = 0, limit = 0;
  cudaFuncAttributes attributes{};
  require(cudaGetDevice(&device), "current device");
  if (const auto found = known.find({device, kernel}); found != known.end()) return found->second;
  require(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "shared memory of a block");
  require(cudaFuncGetAttributes(&attributes, kernel), "a kernel's attributes");
  const auto before = static_cast<std::int64_t>(attributes.sharedSizeBytes);
  const std::int64_t aligned =
      (before + kDynamicSharedAlignment - 1) / kDynamicSharedAlignment * kDynamicSharedAlignment;
  return known[{device, kernel}] = limit - aligned;
}

/// Tells whether the current device takes the launch: its grid and its shared memory.
template <class... Arguments>
bool fits(void (*kernel)(Arguments...), const BlockLine& line) {
  return line.blocks <= kMostBlocks &&
         line.dynamic_shared_bytes <=
             most_dynamic_shared_bytes(reinterpret_cast<const void*>(kernel));
}

/// `kernel<<<line, stream>>>(arguments...)`; no blocks, no launch. Throws DeviceError; what fails
/// while the kernel runs is seen when the stream is waited for.
template <class... Arguments>
void launch(const std::string& name, void (*kernel)(Arguments...), const BlockLine& line,
            cudaStream_t stream, const Arguments&... arguments) {
  if (line.blocks == 0) return;
  // Limit of the kernel, not of the launch: a smaller number would fail another thread's launch.
  const void* const symbol = reinterpret_cast<const void*>(kernel);
  require(cudaFuncSetAttribute(symbol, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               static_cast<int>(most_dynamic_shared_bytes(symbol))),
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
