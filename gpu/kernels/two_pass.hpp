#pragma once

#include <string>

#include "gpu/kernels/emulated.hpp"
#include "gpu/kernels/launch_plan.hpp"

/// The backward of gpu/flash2: tiles of 8, 16 or 32 resident rows.
namespace attest::gpu {

/// Whether shared memory suffices for these head dimensions, and a grid for the blocks.
template <int kResident = 32>
bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation);

/// The schedule of a launch, two_pass:bq=32,bk=…,cq=…,ck=32.
template <int kResident = 32>
std::string two_pass_schedule(const AttentionShape& shape);

/// One emulated backward, both passes, with all that they found and moved.
///
/// Requires: two_pass_fits(). Else the report says what does not.  [gpu/kernels/two_pass_test]
template <int kResident = 32>
simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation);

/// The same launches without making them. Requires head dimensions of at most 576.
template <int kResident = 32>
LaunchPlan two_pass_plan(const AttentionShape& shape);

}  // namespace attest::gpu
