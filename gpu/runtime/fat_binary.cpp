#include "gpu/runtime/fat_binary.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <span>

#include "core/error.hpp"
#include "gpu/runtime/decompression.hpp"

namespace attest::gpu::runtime {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uint32_t kWrapperMagic = 0x466243B1, kMagic = 0xBA55ED50;
constexpr std::uint16_t kPtx = 1;
constexpr std::uint64_t kLz4 = 0x2000, kZstd = 0x8000;

struct Wrapper {
  std::uint32_t magic, version;
  const std::byte* data;
};

struct Header {
  std::uint32_t magic;
  std::uint16_t version, bytes;
  std::uint64_t entries_bytes;
};

// Head of an entry; its name and options follow, then the bytes that it holds.
struct Entry {
  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t padded_bytes;
  std::uint32_t compressed_bytes, options_at;
  std::uint16_t minor, major;
  std::uint32_t architecture, name_at, name_bytes;
  std::uint64_t flags, unused, text_bytes;
};
static_assert(sizeof(Header) == 16 && sizeof(Entry) == 64);

template <class T>
T read(Bytes bytes) {
  if (bytes.size() < sizeof(T)) throw InvalidProblem("its fat binary is cut off; build it again");
  T value;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

Bytes skipped(Bytes bytes, std::uint64_t count) {
  if (count > bytes.size()) throw InvalidProblem("its fat binary is cut off; build it again");
  return bytes.subspan(count);
}

Bytes entries_of(const void* wrapper) {
  const auto outer = read<Wrapper>({static_cast<const std::byte*>(wrapper), sizeof(Wrapper)});
  if (outer.magic != kWrapperMagic || outer.version != 1) {
    throw InvalidProblem(
        "its fat binary has a form that is not read, as with -rdc=true; build "
        "without it");
  }
  const auto header = read<Header>({outer.data, sizeof(Header)});
  if (header.magic != kMagic) throw InvalidProblem("its fat binary does not begin as one");
  return {outer.data + header.bytes, header.entries_bytes};
}

std::string text_of(const Entry& entry, Bytes payload) {
  Compression compression = Compression::none;
  if ((entry.flags & kLz4) != 0) compression = Compression::lz4;
  if ((entry.flags & kZstd) != 0) compression = Compression::zstd;
  if (compression != Compression::none) {
    skipped(payload, entry.compressed_bytes);
    payload = payload.first(entry.compressed_bytes);
  }
  std::string text = decompressed(compression, payload, entry.text_bytes);
  text.resize(std::min(text.size(), text.find('\0')));  // its end, and padding
  return text;
}

[[noreturn]] void refuse(const std::set<std::uint32_t>& others, std::uint32_t newest) {
  const std::string wanted = std::to_string(newest);
  std::string there;
  for (const std::uint32_t other : others) {
    there += (there.empty() ? "" : ", ") + std::string("compute_") + std::to_string(other);
  }
  throw InvalidProblem(
      (there.empty() ? "holds machine code alone, no PTX"
                     : "holds PTX for " + there + " alone, newer than the emulated sm_" + wanted) +
      "; build it with nvcc -gencode arch=compute_" + wanted + ",code=compute_" + wanted);
}

}  // namespace

Ptx ptx_of(const void* wrapper, std::uint32_t newest) {
  std::optional<Entry> best;
  Bytes best_payload;
  std::set<std::uint32_t> newer;
  for (Bytes rest = entries_of(wrapper); !rest.empty();) {
    const auto entry = read<Entry>(rest);
    const Bytes payload = skipped(rest, entry.header_bytes);
    rest = skipped(payload, entry.padded_bytes);
    if (entry.kind != kPtx) continue;
    if (entry.architecture > newest) {
      newer.insert(entry.architecture);
    } else if (!best || best->architecture < entry.architecture) {
      best = entry;
      best_payload = payload.first(entry.padded_bytes);
    }
  }
  if (!best) refuse(newer, newest);
  return {text_of(*best, best_payload), best->architecture};
}

}  // namespace attest::gpu::runtime
