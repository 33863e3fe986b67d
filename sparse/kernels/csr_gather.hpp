#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// Forward: a query stays with its sums, the keys of its list are gathered, up to kGathered at a
/// time (Dao 2023, Algorithm 1, with one query and the keys of a row of CSR).
std::int64_t csr_forward_floats(const attest_problem& problem);
void csr_forward(const attest_forward_args& args);

/// Backward in two passes that recompute P from LSE: rows of the mask for dQ, its columns for dK
/// and dV. No sums across threads, so the bits do not depend on their number.
std::int64_t csr_backward_floats(const attest_problem& problem);
void csr_backward(const attest_backward_args& args);

}  // namespace attest::sparse
