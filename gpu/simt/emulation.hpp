#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "gpu/simt/warp.hpp"

/// The words of CUDA that kernels use, on the host. Each takes the line of its call for diagnoses.
/// [gpu/simt/emulation_test]
#define ATTEST_SIMT_WORLD emulated

// The names are CUDA's; a type in a declaration takes no parentheses.
// NOLINTBEGIN(bugprone-reserved-identifier,bugprone-macro-parentheses)
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (::attest::simt::lane_index())
#define blockIdx (::attest::simt::block_index())
#define blockDim (::attest::simt::block_size())
#define gridDim (::attest::simt::grid_size())

// A static of each declaration tells variables of one name apart.
#define ATTEST_SHARED(type, name, ...)                                            \
  static const char name##_tag = 0;                                               \
  using name##_type = type __VA_ARGS__;                                           \
  name##_type& name = *static_cast<name##_type*>(::attest::simt::shared_variable( \
      &name##_tag, #name, sizeof(name##_type), alignof(name##_type)))
#define ATTEST_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::attest::simt::dynamic_shared())

struct alignas(8) float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};
inline float2 make_float2(float x, float y) { return {x, y}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

using std::max;
using std::min;

namespace attest::simt {
using Line = SourceLine;
}  // namespace attest::simt

inline void __syncthreads(attest::simt::Line where = attest::simt::Line::here()) {
  attest::simt::barrier(0, "__syncthreads", where);
}
inline int __syncthreads_count(int predicate,
                               attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::barrier(predicate != 0 ? 1 : 0, "__syncthreads_count", where);
}
inline int __syncthreads_or(int predicate, attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::barrier(predicate != 0 ? 1 : 0, "__syncthreads_or", where) != 0 ? 1 : 0;
}
inline int __syncthreads_and(int predicate, attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::barrier(predicate == 0 ? 1 : 0, "__syncthreads_and", where) == 0 ? 1 : 0;
}
inline void __syncwarp(unsigned mask = ~0U, attest::simt::Line where = attest::simt::Line::here()) {
  attest::simt::warp_barrier(mask, where);
}

template <attest::simt::Shuffled T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::index, lane, width, where);
}
template <attest::simt::Shuffled T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::exclusive_or, bits, width, where);
}
template <attest::simt::Shuffled T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::up, static_cast<int>(lanes),
                               width, where);
}
template <attest::simt::Shuffled T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::down, static_cast<int>(lanes),
                               width, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::vote(mask, attest::simt::Vote::ballot, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      attest::simt::Line where = attest::simt::Line::here()) {
  return static_cast<int>(attest::simt::vote(mask, attest::simt::Vote::any, predicate != 0, where));
}
inline int __all_sync(unsigned mask, int predicate,
                      attest::simt::Line where = attest::simt::Line::here()) {
  return static_cast<int>(attest::simt::vote(mask, attest::simt::Vote::all, predicate != 0, where));
}

// For the types that CUDA has each for. Blocks may run on several threads of the host, so these are
// atomic there too. They are part of the kernel's own line, also where nothing else is inlined:
// diagnoses name that line.
template <attest::simt::OneOf<int, unsigned, unsigned long long> T>
[[gnu::always_inline]] inline T atomicAdd(T* address, std::type_identity_t<T> value) {
  return __atomic_fetch_add(address, value, __ATOMIC_RELAXED);
}
template <attest::simt::OneOf<float, double> T>
[[gnu::always_inline]] inline T atomicAdd(T* address, std::type_identity_t<T> value) {
  T seen, sum;
  __atomic_load(address, &seen, __ATOMIC_RELAXED);
  do {
    sum = seen + value;
  } while (
      !__atomic_compare_exchange(address, &seen, &sum, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return seen;
}
template <attest::simt::OneOf<int, unsigned, unsigned long long, float> T>
[[gnu::always_inline]] inline T atomicExch(T* address, std::type_identity_t<T> value) {
  T seen;
  __atomic_exchange(address, &value, &seen, __ATOMIC_RELAXED);
  return seen;
}
template <attest::simt::OneOf<int, unsigned, unsigned long long, unsigned short> T>
[[gnu::always_inline]] inline T atomicCAS(T* address, std::type_identity_t<T> expected,
                                          std::type_identity_t<T> value) {
  __atomic_compare_exchange_n(address, &expected, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}
template <attest::simt::OneOf<int, unsigned, long long, unsigned long long> T>
[[gnu::always_inline]] inline T atomicMax(T* address, std::type_identity_t<T> value) {
  T seen = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(address, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
  return seen;
}

// Four words of shared memory at once, at a multiple of their size.
[[gnu::always_inline]] inline float4 shared_load4(
    const float* words, attest::simt::Line where = attest::simt::Line::here()) {
  attest::simt::require_aligned(words, sizeof(float4), where);
  return {words[0], words[1], words[2], words[3]};
}
[[gnu::always_inline]] inline void shared_store4(
    float* words, float4 value, attest::simt::Line where = attest::simt::Line::here()) {
  attest::simt::require_aligned(words, sizeof(float4), where);
  words[0] = value.x;
  words[1] = value.y;
  words[2] = value.z;
  words[3] = value.w;
}

inline float __int_as_float(int bits) {
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
inline int __float_as_int(float value) {
  int bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}
// NOLINTEND(bugprone-reserved-identifier,bugprone-macro-parentheses)
