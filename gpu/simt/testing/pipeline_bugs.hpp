#pragma once

#include <cstdint>

namespace attest::simt {

/// Mistakes of pipelined_product.cuh, one each.
enum class PipelineBug : std::uint8_t {
  none,
  no_wait_for_tiles,      // products of tiles that have not come
  wrong_parity,           // so that the wait is for the phase before
  no_wait_for_readers,    // a tile is overwritten that products still read
  early_release,          // of a tile that a product under way reads
  expects_too_much,       // one row more than the copies bring
  expects_too_little,     // the second copy is left out
  no_init,                // of the barriers of readers
  no_init_fence,          // after their initialisation
  no_barrier_after_init,  // before other lanes use them
  misaligned_box,         // amid a line of 128 bytes
  no_product_fence,       // at all
  scaled_without_fence,   // accumulators are changed between products
  early_accumulators,     // are used before their product has ended
  warps_apart,            // one warp comes to another commit
  warp_missing,           // one warp does not wait
  never_released,         // readers never arrive
  no_async_fence,         // between plain writes and the copy that reads them
  overwritten_tile,       // while a product reads it
  overwritten_store,      // while it reads
  no_wait_for_store,      // before the block ends
  plain_barrier,          // a barrier is read as a number
};
inline constexpr int kPipelineBugs = 22;

}  // namespace attest::simt
