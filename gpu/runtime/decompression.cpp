#include "gpu/runtime/decompression.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "core/error.hpp"

namespace attest::gpu::runtime {
namespace {

// Loaded, not linked: headers and a link-time dependency for two functions are not worth it.
template <class Function>
Function* function_of(const char* library, const char* name, const char* package) {
  void* const loaded = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void* const symbol = loaded == nullptr ? nullptr : dlsym(loaded, name);
  if (symbol == nullptr) {
    throw InvalidProblem("its PTX is compressed, and " + std::string(library) +
                         " is not on this machine: install " + package +
                         ", or build with nvcc --no-compress");
  }
  Function* function = nullptr;
  std::memcpy(&function, &symbol, sizeof symbol);
  return function;
}

std::size_t decompress_lz4(std::span<const std::byte> bytes, std::string& text) {
  using Decompress = int(const char*, char*, int, int);
  auto* const decompress =
      function_of<Decompress>("liblz4.so.1", "LZ4_decompress_safe", "liblz4-1");
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  if (std::max(bytes.size(), text.size()) > kMost) return 0;
  const int written = decompress(reinterpret_cast<const char*>(bytes.data()), text.data(),
                                 static_cast<int>(bytes.size()), static_cast<int>(text.size()));
  return written < 0 ? 0 : static_cast<std::size_t>(written);
}

std::size_t decompress_zstd(std::span<const std::byte> bytes, std::string& text) {
  using Decompress = std::size_t(void*, std::size_t, const void*, std::size_t);
  auto* const decompress = function_of<Decompress>("libzstd.so.1", "ZSTD_decompress", "libzstd1");
  return decompress(text.data(), text.size(), bytes.data(), bytes.size());
}

}  // namespace

std::string decompressed(Compression compression, std::span<const std::byte> bytes,
                         std::size_t text_bytes) {
  if (compression == Compression::none) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
  std::string text(text_bytes, '\0');
  const std::size_t written =
      compression == Compression::lz4 ? decompress_lz4(bytes, text) : decompress_zstd(bytes, text);
  if (written != text_bytes) throw InvalidProblem("its compressed PTX is damaged; build it again");
  return text;
}

}  // namespace attest::gpu::runtime
