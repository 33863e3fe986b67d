#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "gpu/simt/warp.hpp"

/// The words of CUDA that kernels use, on the host. Each takes the line of its call for diagnoses.
/// [gpu/simt/emulation_test]
#define ATTEST_SIMT_WORLD emulated

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

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

template <class T>
T __shfl_sync(unsigned mask, T value, int lane, int width = 32,
              attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::index, lane, width, where);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, int bits, int width = 32,
                  attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::exclusive_or, bits, width, where);
}
template <class T>
T __shfl_up_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                 attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::up, static_cast<int>(lanes),
                               width, where);
}
template <class T>
T __shfl_down_sync(unsigned mask, T value, unsigned lanes, int width = 32,
                   attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::shuffle(mask, value, attest::simt::Source::down, static_cast<int>(lanes),
                               width, where);
}
inline unsigned __ballot_sync(unsigned mask, int predicate,
                              attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::ballot(mask, predicate != 0, where);
}
inline int __any_sync(unsigned mask, int predicate,
                      attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::ballot(mask, predicate != 0, where) != 0 ? 1 : 0;
}
inline int __all_sync(unsigned mask, int predicate,
                      attest::simt::Line where = attest::simt::Line::here()) {
  return attest::simt::ballot(mask, predicate != 0, where) == mask ? 1 : 0;
}

// Blocks may run on several threads of the host, so these are atomic there too.
template <class T>
T atomicAdd(T* address, T value) {
  return std::atomic_ref<T>(*address).fetch_add(value, std::memory_order_relaxed);
}
template <class T>
T atomicExch(T* address, T value) {
  return std::atomic_ref<T>(*address).exchange(value, std::memory_order_relaxed);
}
template <class T>
T atomicCAS(T* address, T expected, T value) {
  std::atomic_ref<T>(*address).compare_exchange_strong(expected, value, std::memory_order_relaxed);
  return expected;
}
template <class T>
T atomicMax(T* address, T value) {
  std::atomic_ref<T> word(*address);
  T seen = word.load(std::memory_order_relaxed);
  while (seen < value && !word.compare_exchange_weak(seen, value, std::memory_order_relaxed)) {
  }
  return seen;
}

// Four words of shared memory at once, at a multiple of their size.
inline float4 shared_load4(const float* words,
                           attest::simt::Line where = attest::simt::Line::here()) {
  attest::simt::require_aligned(words, sizeof(float4), where);
  return {words[0], words[1], words[2], words[3]};
}
inline void shared_store4(float* words, float4 value,
                          attest::simt::Line where = attest::simt::Line::here()) {
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
