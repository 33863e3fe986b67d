#pragma once

#include "gpu/kernels/emulated/emulated.hpp"
#include "gpu/kernels/emulated/launch_plan.hpp"

namespace attest::gpu {

/// Tells whether shared memory suffices for these head dimensions, and a grid for the blocks.
bool two_pass_tensor_core_fits(const AttentionShape& shape, const simt::Emulation& emulation);

/// One emulated backward of tensors in bf16 or f16, both passes, with all that they found and
/// moved.
///
/// Requires: two_pass_tensor_core_fits().  [gpu/kernels/two_pass/two_pass_tensor_core_test]
simt::LaunchReport two_pass_tensor_core_emulated(EmulatedBackward& call,
                                                 const simt::Emulation& emulation);

/// Its launches, T being Bf16 or F16.
///
/// Requires: head dimensions of at most WidestTensorTile::kMostColumns.
template <class T>
LaunchPlan two_pass_tensor_core_plan(const AttentionShape& shape);

}  // namespace attest::gpu
