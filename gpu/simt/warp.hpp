#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/simt/diagnosis.hpp"

/// What the words of CUDA in emulation.hpp call. Each throws InternalError outside of a lane.
namespace attest::simt {

Index3 lane_index();   // threadIdx
Index3 block_index();  // blockIdx
Index3 block_size();   // blockDim
Index3 grid_size();    // gridDim

/// A static shared variable; its bytes begin as NaN. Ends the block when it does not fit.
void* shared_variable(const void* tag, const char* name, std::size_t bytes, std::size_t alignment);
void* dynamic_shared();
/// Diagnoses a wide access at an address that is no multiple of its size, as devices fault on it.
void require_aligned(const void* pointer, std::size_t bytes, SourceLine where);

int barrier(int value, const char* operation, SourceLine where);
void warp_barrier(std::uint32_t mask, SourceLine where);
std::uint32_t ballot(std::uint32_t mask, bool predicate, SourceLine where);  // NOLINT: CUDA's own

/// Where a lane of a shuffle reads.
enum class Source : std::uint8_t { index, exclusive_or, up, down };

/// `value` of another lane, as a word of 64 bits.
std::uint64_t shuffle_bits(std::uint32_t mask, std::uint64_t value, Source source, int argument,
                           int width, SourceLine where);

/// The value of the lane that `source` and `argument` name among `width` neighbours; its own where
/// up or down leaves them. A source outside of the mask is a diagnosis.
template <class T>
T shuffle(std::uint32_t mask, T value, Source source, int argument, int width, SourceLine where) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t), "shuffles move at most eight bytes");
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle_bits(mask, bits, source, argument, width, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace attest::simt
