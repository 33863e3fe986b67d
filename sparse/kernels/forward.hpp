#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// Forward: a tile of queries stays with its sums, the key tiles that its list names stream past;
/// then, query by query, single keys are gathered, up to kGathered at a time (Dao 2023, Algorithm
/// 1, over the lists of a mask). Without a block or CSR mask every tile that band and key lengths
/// leave is visited. Workspace in floats.
std::int64_t forward_floats(const attest_problem& problem);
void forward(const attest_forward_args& args);

}  // namespace attest::sparse
