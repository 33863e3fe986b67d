#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

namespace attest::cpu {

/// Tiles of the flash2 kernels: block_q queries against block_k keys.
inline constexpr std::int64_t kBlockQ = 128;
inline constexpr std::int64_t kBlockK = 64;

/// The score of a head's sink, -inf without sinks.
float sink_of(const attest_problem& problem, std::int64_t head);

/// Forward: a query block stays, keys stream past it; running maximum m and sum l per row (Dao
/// 2023, Algorithm 1). Gathers each tile of K and V from the pages of its keys, where they have
/// pages.
std::int64_t flash2_forward_floats(const attest_problem& problem);
void flash2_forward(const attest_forward_args& args);

/// Backward in two passes that recompute P from LSE: one writes dQ, the other dK and dV; then
/// dSinks, of each head the rows in their order, and dBias, of each element the tiles in their
/// order. No sums across threads, so the bits do not depend
/// on their number (Dao 2023, Algorithm 2, split). The workspace: dO . O - dLSE of each query,
/// which the first pass leaves for the second, then the tiles of each thread.
std::int64_t flash2_backward_deltas(const attest_problem& problem);
std::int64_t flash2_backward_floats(const attest_problem& problem);
void flash2_backward(const attest_backward_args& args);

}  // namespace attest::cpu
