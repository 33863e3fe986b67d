#pragma once

#include <stdexcept>

namespace attest::gpu::cuda {

/// What a CUDA device or its driver refused: "flash2: cudaErrorInvalidValue (invalid argument)".
struct DeviceError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace attest::gpu::cuda
