#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "gpu/simt/diagnosis.hpp"

/// Functions behind the CUDA words in emulation.hpp. Each throws InternalError outside of a lane.
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

int barrier(int value, std::string_view operation, SourceLine where);
void warp_barrier(std::uint32_t mask, SourceLine where);
/// Vote of the lanes of `mask` that have not returned: which say yes, whether any does, or all do.
enum class Vote : std::uint8_t { ballot, any, all };
std::uint32_t vote(std::uint32_t mask, Vote kind, bool predicate,
                   SourceLine where);  // NOLINT: CUDA's own

template <class T, class... Types>
concept OneOf = (std::is_same_v<T, Types> || ...);

/// Where a lane of a shuffle reads.
enum class Source : std::uint8_t { index, exclusive_or, up, down };

/// How lanes of a butterfly join what two of them hold.
enum class Joined : std::uint8_t { maximum, sum };

/// As a lane would by __shfl_xor_sync with the lane width / 2 away, then half as far, down to the
/// next one: lanes meet once instead of at each step.
///
/// Requires: a width of 2, 4, 8, 16 or 32, the same at one line.
float butterfly(float value, Joined joined, int width, SourceLine where);

/// `value` of another lane, as a word of 64 bits.
std::uint64_t shuffle_bits(std::uint32_t mask, std::uint64_t value, Source source, int argument,
                           int width, SourceLine where);

/// Types that __shfl_sync and its like have overloads for.
template <class T>
concept Shuffled =
    OneOf<T, int, unsigned, long, unsigned long, long long, unsigned long long, float, double>;

/// The value of the lane that `source` and `argument` name among `width` neighbours; its own where
/// they are left. A source that the mask does not name, that has returned or never was, and a width
/// that is no power of two up to 32 are diagnoses.  [gpu/simt/emulation_test "shuffles read where
/// PTX says"]
template <Shuffled T>
T shuffle(std::uint32_t mask, T value, Source source, int argument, int width, SourceLine where) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  bits = shuffle_bits(mask, bits, source, argument, width, where);
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

}  // namespace attest::simt
