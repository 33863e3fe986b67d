#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

/// Fat binaries as nvcc writes them, for tests on machines without nvcc.
namespace attest::gpu::runtime::testing {

inline constexpr std::uint16_t kPtx = 1, kMachineCode = 2;
inline constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000;

/// One entry; `text_bytes` is that of compressed ones.
struct Part {
  std::uint16_t kind = kPtx;
  std::uint32_t architecture = 80;
  std::string bytes;
  std::uint64_t flags = 0, text_bytes = 0;
};

/// Argument of __cudaRegisterFatBinary.
struct Wrapper {
  std::uint32_t magic = 0x466243B1, version = 1;
  const void* data = nullptr;
  void* unused = nullptr;
};

/// Appends the bytes of a number.
template <class T>
void append(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The bytes that a Wrapper points to.
inline std::string fat_binary(const std::vector<Part>& parts) {
  constexpr std::uint32_t kEntryBytes = 64;
  std::string entries;
  for (const Part& part : parts) {
    const std::uint64_t padded = (part.bytes.size() + 7) / 8 * 8;
    append(entries, part.kind);
    append(entries, std::uint16_t{0x101});
    append(entries, kEntryBytes);
    append(entries, padded);
    append(entries, static_cast<std::uint32_t>(part.flags == 0 ? 0 : part.bytes.size()));
    append(entries, std::uint32_t{0});
    append(entries, std::uint32_t{9} << 16);  // PTX 9.0
    append(entries, part.architecture);
    append(entries, std::uint64_t{0});  // no name
    append(entries, part.flags | 0x11);
    append(entries, std::uint64_t{0});
    append(entries, part.text_bytes);
    entries += part.bytes;
    entries.resize(entries.size() + padded - part.bytes.size(), '\0');
  }
  std::string all;
  append(all, std::uint32_t{0xBA55ED50});
  append(all, std::uint16_t{1});
  append(all, std::uint16_t{16});
  append(all, std::uint64_t{entries.size()});
  return all + entries;
}

}  // namespace attest::gpu::runtime::testing
