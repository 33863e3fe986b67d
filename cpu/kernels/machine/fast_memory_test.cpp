#include "cpu/kernels/machine/fast_memory.hpp"

#include <fstream>
#include <string>

#include "core/testing/catch.hpp"

namespace attest::cpu {
namespace {

namespace fs = std::filesystem;

void write_cache(const fs::path& folder, const std::string& level, const std::string& type,
                 const std::string& size) {
  fs::create_directories(folder);
  std::ofstream(folder / "level") << level << "\n";
  std::ofstream(folder / "type") << type << "\n";
  std::ofstream(folder / "size") << size << "\n";
}

TEST_CASE("size of the first-level data cache", "[cpu]") {
  const fs::path caches = "fast_memory_test_caches";
  fs::remove_all(caches);
  CHECK(first_level_cache_bytes(49152, caches) == 49152);
  CHECK(first_level_cache_bytes(0, caches) == kFallbackCacheBytes);  // no such directory
  write_cache(caches / "index0", "2", "Unified", "2048K");
  write_cache(caches / "index1", "1", "Instruction", "16K");
  CHECK(first_level_cache_bytes(0, caches) == kFallbackCacheBytes);
  write_cache(caches / "index2", "1", "Data", "48K");
  CHECK(first_level_cache_bytes(-1, caches) == 48 * 1024);
  for (const char* size : {"", "K", "48X", "0K", "99999999999999999999K"}) {
    INFO(size);
    write_cache(caches / "index2", "1", "Data", size);
    CHECK(first_level_cache_bytes(0, caches) == kFallbackCacheBytes);
  }
  write_cache(caches / "index2", "1", "Data", "1M");
  CHECK(first_level_cache_bytes(0, caches) == 1024 * 1024);
  fs::remove_all(caches);
  CHECK(first_level_cache_bytes() > 0);
}

}  // namespace
}  // namespace attest::cpu
