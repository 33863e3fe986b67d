#pragma once

#include <stdexcept>

namespace attest::gpu::cuda {

/// Refusal of a CUDA device or its driver: "flash2: cudaErrorInvalidValue (invalid argument)".
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace attest::gpu::cuda
