#pragma once

#include <cstdint>
#include <filesystem>

namespace attest::cpu {

/// Bytes of cache assumed where the machine does not say: 32 KiB, the smallest first-level data
/// cache of x86-64 and AArch64 server cores.
inline constexpr std::int64_t kFallbackCacheBytes = 32 * 1024;

/// Bytes of the first-level data cache of one core of this machine: what sysconf says, else what
/// the kernel's cache directory says, else kFallbackCacheBytes. The same on every call.
std::int64_t first_level_cache_bytes();

/// The same with the two answers given: `configured` that of sysconf (at most 0: none), `caches` a
/// directory with one index*/ per cache and files level, type ("Data") and size ("48K").
/// [cpu/kernels/machine/fast_memory_test]
std::int64_t first_level_cache_bytes(std::int64_t configured, const std::filesystem::path& caches);

}  // namespace attest::cpu
