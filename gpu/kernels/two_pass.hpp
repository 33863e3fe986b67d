#pragma once

#include "gpu/kernels/emulated.hpp"
#include "gpu/kernels/fast_memory.hpp"

namespace attest::gpu {

/// Whether shared memory suffices for these head dimensions, and a grid for the blocks.
bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation);

/// The schedule of a launch, two_pass:bq=32,bk=…,cq=…,ck=32.
std::string two_pass_schedule(const AttentionShape& shape);

/// One emulated backward, both passes, with all that they found and moved.
///
/// Requires: two_pass_fits(). Else the report says what does not.  [gpu/kernels/two_pass_test]
simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation);

/// The fast memory that a block has, of the pass that has more. Requires head dimensions at most
/// 576, else throws InvalidProblem.  [gpu/kernels/two_pass_test "fast memory"]
FastMemory two_pass_fast_memory(const AttentionShape& shape);

}  // namespace attest::gpu
