#pragma once

#include "gpu/kernels/emulated/emulated.hpp"

namespace attest::gpu::testing {

/// The second launch of key_stationary, all barriers of its blocks forgotten. For heads of at most
/// 32 columns.
simt::LaunchReport key_stationary_without_barriers(const EmulatedBackward& call,
                                                   const simt::Emulation& emulation);

/// A walk over the key tiles that a block mask lists for the first 32 queries, all barriers
/// forgotten. Requires: at most four tiles of 16 keys.
simt::LaunchReport listed_walk_without_barriers(const EmulatedForward& call,
                                                const simt::Emulation& emulation);

/// A tile of A A, A (64, 64), the panels' barriers forgotten.
simt::LaunchReport square_product_without_barriers(const simt::Emulation& emulation);

}  // namespace attest::gpu::testing
