#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"

namespace attest::sparse {

/// Backward in two passes that recompute P from LSE: tiles and single keys of each query for dQ,
/// those of each key for dK and dV. No sums across threads, so the bits do not depend on their
/// number. Workspace in floats.
std::int64_t backward_floats(const attest_problem& problem);
void backward(const attest_backward_args& args);

}  // namespace attest::sparse
