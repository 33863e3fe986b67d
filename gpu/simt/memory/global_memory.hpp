#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "gpu/simt/diagnosis.hpp"

/// Global memory of an emulated launch: the tensors that its kernel may touch, and what it moves.
namespace attest::simt {

/// Use of a word of global memory by a lane. Strong accesses (PTX ISA, memory consistency model)
/// are for words that several threads use at once, as atomic additions are.
enum class GlobalUse : std::uint8_t { read, write, add, strong_read, strong_write };

/// Tells whether memory may be another then.
inline bool writes(GlobalUse use) {
  return use != GlobalUse::read && use != GlobalUse::strong_read;
}

/// Bytes moved between global memory and the blocks. An atomic addition reads and writes.
struct GlobalTraffic {
  std::int64_t read_bytes = 0, written_bytes = 0;

  void add(std::size_t bytes, GlobalUse use) {
    const auto count = static_cast<std::int64_t>(bytes);
    if (use == GlobalUse::add || !writes(use)) read_bytes += count;
    if (writes(use)) written_bytes += count;
  }
  GlobalTraffic& operator+=(const GlobalTraffic& other) {
    read_bytes += other.read_bytes;
    written_bytes += other.written_bytes;
    return *this;
  }
  friend bool operator==(const GlobalTraffic&, const GlobalTraffic&) = default;
};

/// A tensor as a kernel's pointer sees it: `count` elements from `data` on.
struct GlobalRange {
  std::string name;
  const std::byte* data = nullptr;
  std::int64_t bytes = 0;
  std::size_t element_bytes = 1;
  bool writable = false;  // through a pointer to this tensor
};

/// A pointer that only the traffic policy opens (gpu/simt/memory/traffic.hpp): what bypasses the
/// count does not compile.
template <class T>
class GlobalPointer {
 public:
  GlobalPointer() = default;
  GlobalPointer(T* data, int tensor) : data_(data), tensor_(tensor) {}
  /// Reading alone.
  operator GlobalPointer<const T>() const { return {data_, tensor_}; }  // NOLINT: as pointers do

  GlobalPointer operator+(std::int64_t elements) const { return {data_ + elements, tensor_}; }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  friend struct GlobalAccess;
  T* data_ = nullptr;
  int tensor_ = -1;
};

/// The tensors of one launch, by the number in which they were added.
class GlobalMemory {
 public:
  /// A pointer to `count` elements; null stays null and may not be followed.
  template <class T>
  GlobalPointer<T> add(std::string name, T* data, std::int64_t count) {
    const auto* bytes = reinterpret_cast<const std::byte*>(data);
    ranges_.push_back({std::move(name), bytes, count * static_cast<std::int64_t>(sizeof(T)),
                       sizeof(T), !std::is_const_v<T>});
    return {data, static_cast<int>(ranges_.size()) - 1};
  }

  const std::vector<GlobalRange>& ranges() const { return ranges_; }

  /// The tensor in which a byte lies, or -1.
  int find(const void* pointer) const;
  /// The tensor in which a byte lies or to which it is nearest, -1 where there is none.
  int find_nearest(const void* pointer) const {
    const auto place = reinterpret_cast<std::uintptr_t>(pointer);
    int nearest = -1;
    std::uintptr_t least = ~std::uintptr_t{0};
    for (std::size_t k = 0; k < ranges_.size() && least > 0; ++k) {
      const auto begin = reinterpret_cast<std::uintptr_t>(ranges_[k].data);
      const auto end = begin + static_cast<std::uintptr_t>(ranges_[k].bytes);
      const std::uintptr_t distance = place < begin  ? begin - place
                                      : place >= end ? place - end + 1
                                                     : 0;
      if (ranges_[k].data == nullptr || distance >= least) continue;
      least = distance;
      nearest = static_cast<int>(k);
    }
    return nearest;
  }

  /// Tells whether the tensor has all these bytes, the first at a multiple of `alignment`.
  bool has(int tensor, const void* pointer, std::size_t bytes, std::size_t alignment) const {
    if (static_cast<std::size_t>(tensor) >= ranges_.size()) return false;  // negative: too large
    const GlobalRange& range = ranges_[static_cast<std::size_t>(tensor)];
    const auto offset = static_cast<const std::byte*>(pointer) - range.data;
    return range.data != nullptr && offset >= 0 &&
           offset + static_cast<std::int64_t>(bytes) <= range.bytes &&
           (reinterpret_cast<std::uintptr_t>(pointer) & (alignment - 1)) == 0;
  }
  /// The fault of a lane's access that it has not: beyond the tensor, or not aligned.
  Finding fault(int tensor, const void* pointer, std::size_t bytes, GlobalUse use,
                std::uint32_t lane) const;

 private:
  std::vector<GlobalRange> ranges_;
};

/// An access of the running lane: counted, checked, carried out. One that leaves its tensor, or
/// lies at an address that is no multiple of its size, is a diagnosis instead; a read then gives
/// zeros. With checks on, a race with an access before is one, too. [gpu/simt/memory/traffic_test]
void global_read(int tensor, const void* from, void* to, std::size_t bytes, SourceLine where);
void global_write(int tensor, void* to, const void* from, std::size_t bytes, SourceLine where);
/// The same of any number of bytes, at any address: by tensor copies.
void global_read_row(int tensor, const void* from, void* to, std::size_t bytes, SourceLine where);
void global_write_row(int tensor, void* to, const void* from, std::size_t bytes, SourceLine where);
/// Atomic also between blocks that run on several threads.
void global_add(int tensor, float* to, float value, SourceLine where);

}  // namespace attest::simt
