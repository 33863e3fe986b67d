#pragma once

#include <cstdint>

#include "gpu/simt/launch.hpp"

/// Kernels that are right, and the same with one mistake each, compiled with hooks.
namespace attest::simt {

enum class SeededBug : std::uint8_t {
  none,                          // sums of 40 rows of 32 words in tiles of 16 rows
  no_barrier_after_load,         // a tile is used before all lanes have written it
  no_barrier_before_load,        // a tile is overwritten while others still read it
  no_warp_barrier_after_write,   // a lane reads what another of its warp has just written
  no_warp_barrier_before_write,  // a lane overwrites what another of its warp still reads
  uninitialised_rows,            // rows are read that nothing has written
  past_the_tile,                 // one row more than the tile has: the next variable's
  before_the_tile,               // rows before the first
  misaligned_row,                // four words at once from an odd place
  wide_past_the_strip,           // four words at once from beyond the last ones
  past_the_policy,               // a global pointer followed by hand
  plain_addition,                // += where atomicAdd is needed
  uninitialised_sum,             // added to before anything is there
  early_sum,                     // read before all lanes have added to it

  none_of_groups,      // bytes turned round among eight lanes
  barrier_of_too_few,  // four of the eight wait for one another

  none_of_global_words,  // neighbours exchange words of global memory, blocks add to one
  no_barrier_between,    // the neighbour's word is read before a barrier
  one_warp_barrier,      // of a warp alone, between lanes of two
  next_block_word,       // a block reads what the next one writes
  one_word_of_all,       // all blocks write one word
  store_for_add,         // where an atomic addition is needed
  read_of_sum,           // of what other blocks add to

  none_of_copies,         // tiles that come by asynchronous copies are summed
  no_wait,                // for the copies
  wait_for_too_few,       // one group fewer than are needed
  no_commit,              // so that a wait waits for nothing
  no_barrier_after_wait,  // a lane waits for its own copies only
  copy_over_readers,      // before all lanes have read the tile before
  copy_past_the_stages,   // to memory that is not there

  none_of_products,            // a product of 16-bit matrices by tensor cores
  no_barrier_before_ldmatrix,  // rows are loaded that others have not written yet
  odd_row_address,             // of a row, at no multiple of 16 bytes
  swapped_fragments,           // of the first factor: rows below where columns to the right belong
  not_transposed,              // the second factor, where its columns are needed

  none_of_tensor_copies,  // planes that come by tensor copies are summed
  no_tensor_wait,         // for the copies' mbarriers
  one_warp_waits,         // of the two that use what comes
  copy_over_words,        // before all lanes have used them
  unused_copy,            // nothing waits for the last one
  no_fence_before_store,  // of what plain writes have written
  no_store_commit,        // so that a wait waits for nothing

  none_of_fragments,        // a product of a warpgroup with a factor in registers
  no_fence_before_product,  // of what plain writes have written
  fragment_without_fence,   // changed between products
  fragment_under_way,       // changed before its product has ended
};

struct SeededRun {
  LaunchReport report;
  bool right = false;  // what was computed
};

SeededRun run_seeded(SeededBug bug, const Emulation& emulation);

/// Runs a bug of words of global memory.
SeededRun run_global_words(SeededBug bug, const Emulation& emulation);
/// Runs a bug of asynchronous copies.
SeededRun run_copies(SeededBug bug, const Emulation& emulation);
/// Runs a bug of tensor copies.
SeededRun run_tensor_copies(SeededBug bug, const Emulation& emulation);
/// Runs a bug of a warpgroup's products from registers.
SeededRun run_fragments(SeededBug bug, const Emulation& emulation);
/// Runs a bug of matrix products.
SeededRun run_products(SeededBug bug, const Emulation& emulation);

}  // namespace attest::simt
