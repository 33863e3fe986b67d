#pragma once

#include <string>

#include "gpu/kernels/emulated/emulated_kernel.hpp"

namespace attest::gpu {

/// gpu/block_flash2: forward and backward over the lists of a block mask; all that gpu/flash2 takes
/// but boolean masks.  [gpu/kernels/block_flash2/block_flash2_test]
const EmulatedKernel& block_flash2_kernel();

/// The schedule of its backward, block_two_pass:bq=32,bk=…,cq=…,ck=32.
std::string block_two_pass_schedule(const AttentionShape& shape);

}  // namespace attest::gpu
