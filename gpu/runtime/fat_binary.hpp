#pragma once

#include <cstdint>
#include <string>

namespace attest::gpu::runtime {

/// The newest PTX that a device takes, from what nvcc hands to __cudaRegisterFatBinary.
///
/// `architecture`: the device's, 80 for sm_80. Throws InvalidProblem where there is none, with the
/// option of nvcc that adds it, and for bytes that are no fat binary.
/// [gpu/runtime/fat_binary_test]
std::string ptx_of(const void* wrapper, std::uint32_t architecture);

}  // namespace attest::gpu::runtime
