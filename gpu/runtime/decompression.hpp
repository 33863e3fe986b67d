#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace attest::gpu::runtime {

enum class Compression : std::uint8_t { none, lz4, zstd };

/// The text that was compressed to these bytes, by the system's library for it, loaded when it is
/// needed. Throws InvalidProblem where that library is absent, and for bytes that are not of so
/// long a text.  [gpu/runtime/fat_binary_test]
std::string decompressed(Compression compression, std::span<const std::byte> bytes,
                         std::size_t text_bytes);

}  // namespace attest::gpu::runtime
