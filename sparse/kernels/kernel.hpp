#pragma once

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// The kernels of this room: f32, bf16 and f16 inputs with f32 arithmetic, every feature of the ABI
/// but the boolean mask, in whose place each has a form of sparsity pattern. All of K and
/// V is converted once a call; tiles and pairs beyond the lists are not visited.
/// [sparse/kernels/tiles_test "beyond the lists"]
const attest_kernel& block_flash2_kernel();  // ATTEST_BLOCK_MASK
const attest_kernel& csr_gather_kernel();    // ATTEST_CSR_MASK: any pattern

}  // namespace attest::sparse
