#pragma once

#include <cstdint>

#include "gpu/simt/launch.hpp"

/// A kernel that is right, and the same with one mistake each, compiled with hooks.
namespace attest::simt {

enum class SeededBug : std::uint8_t {
  none,
  no_barrier_after_load,         // a tile is used before all lanes have written it
  no_barrier_before_load,        // a tile is overwritten while others still read it
  no_warp_barrier_after_write,   // a lane reads what another of its warp has just written
  no_warp_barrier_before_write,  // a lane overwrites what another of its warp still reads
  uninitialised_rows,            // rows are read that nothing has written
  past_the_tile,                 // one row more than there is shared memory for
  misaligned_row,                // four words at once from an odd place
  past_the_policy,               // a global pointer followed by hand
  plain_addition,                // += where atomicAdd is needed
};

struct SeededRun {
  LaunchReport report;
  bool right = false;  // the sums are those of the rows
};

/// Sums of 40 rows of 32 words in tiles of 16 rows.
SeededRun run_seeded(SeededBug bug, const Emulation& emulation);

}  // namespace attest::simt
