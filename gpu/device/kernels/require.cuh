#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "gpu/device/error.hpp"

namespace attest::gpu::cuda {

/// Throws DeviceError that names `what` was asked for. The runtime's memory of an error that does
/// not end the context is cleared.  [gpu/device/errors_test]
inline void require(cudaError_t status, const std::string& what) {
  if (status == cudaSuccess) return;
  static_cast<void>(cudaGetLastError());
  throw DeviceError(what + ": " + cudaGetErrorName(status) + " (" + cudaGetErrorString(status) +
                    ")");
}

}  // namespace attest::gpu::cuda
