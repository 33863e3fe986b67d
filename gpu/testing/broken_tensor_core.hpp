#pragma once

#include <cstdint>

#include "gpu/kernels/emulated/emulated.hpp"

namespace attest::gpu::testing {

/// Mistakes of a kernel on tensor cores, one at a time.
enum class TensorCoreBug : std::uint8_t {
  none,
  waits_for_too_few,    // copies of the tile before the one that is used
  no_barrier,           // after the wait: other lanes' copies may be under way
  copies_over_readers,  // the next tile goes where the present one is
  swaps_fragment,       // rows and columns of the first product's second factor
  sees_past_the_end,    // the last tile's rows that do not exist are not masked
  casts_twice,          // P and dS to bf16 before they are cast to f16
  forgets_transpose,    // rows and columns of dS where it is added to dQ
  reads_dS_early        // no barrier before other warps' dS is added to dQ
};

/// Forward of tensors in f16 whose heads have at most 32 columns, with one bug.
simt::LaunchReport flash2_tensor_core_with(TensorCoreBug bug, EmulatedForward& call,
                                           const simt::Emulation& emulation);

/// The same for backward, both passes; and with dQ by atomic additions.
simt::LaunchReport two_pass_tensor_core_with(TensorCoreBug bug, EmulatedBackward& call,
                                             const simt::Emulation& emulation);
simt::LaunchReport key_stationary_tensor_core_with(TensorCoreBug bug, EmulatedBackward& call,
                                                   const simt::Emulation& emulation);

/// Square tiles forward of tensors in f16: rows and columns of second factors swapped, or no
/// barrier between the sums that warps leave and the lanes that take them.
simt::LaunchReport square_tiled_with_swapped_fragment(EmulatedForward& call);
simt::LaunchReport square_tiled_without_barrier(EmulatedForward& call,
                                                const simt::Emulation& emulation);

}  // namespace attest::gpu::testing
