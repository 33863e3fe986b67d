#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#define ATTEST_SIMT_WORLD device

#define ATTEST_SHARED(type, name, ...) __shared__ type name __VA_ARGS__
#define ATTEST_DYNAMIC_SHARED(type, name)                                  \
  extern __shared__ __align__(1024) unsigned char attest_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(attest_dynamic_shared)
