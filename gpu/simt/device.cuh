#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#define ATTEST_SIMT_WORLD device

// At a multiple of 16, as the emulation has it: for the widest load of a lane.
#define ATTEST_SHARED(type, name, ...) __shared__ __align__(16) type name __VA_ARGS__
__device__ inline float4 shared_load4(const float* words) {
  return *reinterpret_cast<const float4*>(words);
}
__device__ inline void shared_store4(float* words, float4 value) {
  *reinterpret_cast<float4*>(words) = value;
}
#define ATTEST_DYNAMIC_SHARED(type, name)                                  \
  extern __shared__ __align__(1024) unsigned char attest_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(attest_dynamic_shared)
