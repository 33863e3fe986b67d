#pragma once

#include <cstdint>
#include <string>

namespace attest::gpu::runtime {

struct Ptx {
  std::string text;
  std::uint32_t architecture = 0;  // 90: compute_90 or compute_90a
};

/// The newest PTX up to an architecture, from what nvcc hands to __cudaRegisterFatBinary.
///
/// Throws InvalidProblem where there is none, with the option of nvcc that adds it, and for bytes
/// that are no fat binary.
/// [gpu/runtime/fat_binary_test]
Ptx ptx_of(const void* wrapper, std::uint32_t newest);

}  // namespace attest::gpu::runtime
