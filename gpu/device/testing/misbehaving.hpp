#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

/// A kernel on device tensors that sets O = 2 Q, element by element in memory, and the same with
/// one mistake each.
namespace attest::gpu::cuda {

enum class Mistake : std::uint8_t {
  none,
  writes_behind,   // one element more than O has
  writes_before,   // one element before O
  writes_input,    // Q, too
  ignores_stream,  // runs on a stream of its own
  refused_launch,  // more threads in a block than there can be
  stray_pointer,   // through an address that is no memory: ends the process's context
  uses_workspace,  // one byte more than it asked for
};

const attest_kernel& doubling_kernel(Mistake mistake);

}  // namespace attest::gpu::cuda
