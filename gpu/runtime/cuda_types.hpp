#pragma once

#include <cstddef>

/// The part of CUDA's runtime interface that is provided, as its ABI has it.
namespace attest::gpu::runtime {

enum class Status : int {
  success = 0,
  invalid_value = 1,
  memory_allocation = 2,
  invalid_configuration = 9,
  invalid_symbol = 13,
  invalid_device_function = 98,
  invalid_device = 101,
  invalid_handle = 400,
  launch_failure = 719,
  not_supported = 801,
};

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

/// A cudaStream_t; null is the default stream.
using Stream = const void*;

}  // namespace attest::gpu::runtime
