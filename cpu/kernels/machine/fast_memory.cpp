#include "cpu/kernels/machine/fast_memory.hpp"

#include <unistd.h>

#include <fstream>
#include <string>

namespace attest::cpu {
namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& file) {
  std::string word;
  std::ifstream(file) >> word;
  return word;
}

// "48K" or "1M" as bytes; 0 for anything else.
std::int64_t bytes_of(const std::string& size) {
  std::int64_t number = 0;
  std::size_t digits = 0;
  constexpr std::size_t kMostDigits = 9;
  for (; digits < size.size() && size[digits] >= '0' && size[digits] <= '9'; ++digits) {
    if (digits == kMostDigits) return 0;
    number = 10 * number + (size[digits] - '0');
  }
  const std::string unit = size.substr(digits);
  if (unit == "K") return 1024 * number;
  if (unit == "M") return 1024 * 1024 * number;
  return unit.empty() ? number : 0;
}

}  // namespace

std::int64_t first_level_cache_bytes(std::int64_t configured, const fs::path& caches) {
  if (configured > 0) return configured;
  std::error_code none;
  for (const auto& cache : fs::directory_iterator(caches, none)) {
    if (cache.path().filename().string().rfind("index", 0) != 0) continue;
    if (first_word(cache.path() / "level") != "1") continue;
    if (first_word(cache.path() / "type") == "Instruction") continue;
    const std::int64_t bytes = bytes_of(first_word(cache.path() / "size"));
    if (bytes > 0) return bytes;
  }
  return kFallbackCacheBytes;
}

std::int64_t first_level_cache_bytes() {
#ifdef _SC_LEVEL1_DCACHE_SIZE
  const std::int64_t configured = sysconf(_SC_LEVEL1_DCACHE_SIZE);
#else
  const std::int64_t configured = 0;
#endif
  static const std::int64_t bytes =
      first_level_cache_bytes(configured, "/sys/devices/system/cpu/cpu0/cache");
  return bytes;
}

}  // namespace attest::cpu
