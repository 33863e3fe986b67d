#pragma once

#include <string>

#include "gpu/kernels/emulated/emulated_kernel.hpp"
#include "gpu/kernels/emulated/registers.hpp"

/// The backward of gpu/flash2: tiles of 32 resident rows, and of 4 to 64 with registers held.
namespace attest::gpu {

/// Tells whether shared memory suffices for these head dimensions, and a grid for the blocks.
bool two_pass_fits(const AttentionShape& shape, const simt::Emulation& emulation);

/// The schedule of a launch, two_pass:bq=32,bk=…,cq=…,ck=32.
template <int kResident = 32>
std::string two_pass_schedule(const AttentionShape& shape);

/// One emulated backward, both passes, with all that they found and moved.
///
/// Requires: two_pass_fits(). Else the report says what does not.
/// [gpu/kernels/two_pass/two_pass_test]
simt::LaunchReport two_pass_emulated(const EmulatedBackward& call,
                                     const simt::Emulation& emulation);

/// The same as a kernel has it. Its plan requires head dimensions of at most 576.
template <int kResident = 32, Registers kRegisters = Registers::as_compiled>
EmulatedDirection<EmulatedBackward> two_pass_direction();

}  // namespace attest::gpu
