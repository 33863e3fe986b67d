#pragma once

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// The kernels of this room: f32, bf16 and f16 inputs with f32 arithmetic, every feature of the
/// ABI, boolean masks by csr_gather alone. Forward reads rows of K and V where they lie if they are
/// float32; what else is met many times is converted once a call. Both run the same passes over
/// tiles and single pairs (SplitMask): block_flash2 has tiles alone, those of the listed blocks;
/// csr_gather finds the tiles of a CSR mask that are dense and gathers the other pairs. Tiles and
/// keys beyond the lists are not visited.  [sparse/kernels/tiles_test "beyond the lists"]
///
/// They name no schedule, so that no words are counted for them, because none of one spelling has
/// their tiles. block_flash2 cuts every block of the pattern by itself into at most kTile rows: 32
/// for blocks of 32, 64 and 36 by turns for blocks of 100, where the schedule block_flash2 has one
/// extent from row 0 on. csr_gather takes pairs by tiles and singly in one call, and holds the
/// scores of up to kGathered single keys at a time, whose places in its list stay beside them.
/// [sparse/kernels/tiles_test "tiles of no schedule"]
const attest_kernel& block_flash2_kernel();  // ATTEST_BLOCK_MASK
const attest_kernel& csr_gather_kernel();    // ATTEST_CSR_MASK: any pattern

}  // namespace attest::sparse
