#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"

/// Masks of heads in memory, as a call has them.
namespace attest {

/// Returns the strides of the problem's mask of heads. By the seed, rows lie as far apart as they
/// are long or further, and heads lie within a batch entry or batch entries within a head.
std::array<std::int64_t, 4> head_mask_strides(const Problem& problem);

/// Returns the bytes that lie so; no byte without such a mask.
std::vector<std::uint8_t> head_mask_bytes(const Problem& problem);

/// Counts the bytes from the first element of the mask of heads of a call to its last.
std::int64_t head_mask_span(const attest_problem& problem);

}  // namespace attest
