#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace attest::gpu::cuda {

/// Effect of a call on the device beside its result.
struct Finding {
  enum class Kind : std::uint8_t {
    wrote_beside,   // a buffer: into a guard region
    wrote_input,    // a tensor or an array of the mask
    device_failed,  // CUDA's own error; the process's context may be lost
  };
  Kind kind;
  std::string text;
};

/// Returns the finding of this thread's last call of a kernel on the device, once.
/// [gpu/device/staging_test]
std::optional<Finding> take_finding();

}  // namespace attest::gpu::cuda
