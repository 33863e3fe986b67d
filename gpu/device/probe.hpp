#pragma once

#include <string>

namespace attest::gpu::cuda {

/// The first CUDA device that this process sees.
struct Device {
  std::string name;            // "NVIDIA H200 (sm_90)"; empty when there is none
  std::string absent_because;  // else empty
  int driver_version = 0, runtime_version = 0;

  bool present() const { return absent_because.empty(); }
};

/// Asked once. Builds without CUDA say so.  [gpu/device/absent_test]
const Device& device();

}  // namespace attest::gpu::cuda
