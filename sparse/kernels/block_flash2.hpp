#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// Forward: a query tile stays, the key tiles of its list stream past it; K is transposed once a
/// call and not once a tile (Dao 2023, Algorithm 1, over the blocks of Dao et al. 2022,
/// Algorithm 5).
std::int64_t block_forward_floats(const attest_problem& problem);
void block_forward(const attest_forward_args& args);

/// Backward in two passes that recompute P from LSE: by the lists of queries for dQ, by those of
/// keys for dK and dV. No sums across threads, so the bits do not depend on their number
/// (Dao 2023, Algorithm 2, split).
std::int64_t block_backward_floats(const attest_problem& problem);
void block_backward(const attest_backward_args& args);

}  // namespace attest::sparse
