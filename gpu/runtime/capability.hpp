#pragma once

#include <cstdint>

namespace attest::gpu::runtime {

/// An emulated device, as far as two of them differ: extents of the CUDA programming guide for a
/// compute capability, numbers of one device that has it.
struct Capability {
  std::uint32_t architecture;  // 80: 8.0
  const char* name;
  std::int64_t processors, processor_shared_bytes, most_shared_bytes, l2_bytes;

  constexpr int major() const { return static_cast<int>(architecture / 10); }
  constexpr int minor() const { return static_cast<int>(architecture % 10); }
};

/// An A100's and an H100's.
inline constexpr Capability kCapability80{80, "sm_80", 108, 164 << 10, 163 << 10, 40 << 20};
inline constexpr Capability kCapability90{90, "sm_90", 132, 228 << 10, 227 << 10, 50 << 20};

/// PTX for a newer one is left alone.
inline constexpr std::uint32_t kNewestArchitecture = kCapability90.architecture;

}  // namespace attest::gpu::runtime
