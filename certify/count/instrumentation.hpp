#pragma once

#include <cstdint>

#include "core/abi/attest_kernel.h"
#include "core/problem.hpp"
#include "io/schedule/schedule.hpp"

/// The part of a simulated call that runs under valgrind.
namespace attest::certify {

/// Tells whether this program was built with valgrind's client requests.
bool can_instrument();

/// Calls the kernel once on the problem's normal values with one thread, instrumented for exactly
/// the call in `direction` and for reading `flush_bytes` bytes afterwards, which drives everything
/// else out of a cache of that size.
/// Requires: a kernel that takes the problem. Else throws InvalidProblem.
void call_instrumented(const attest_kernel& kernel, const Problem& problem, Direction direction,
                       std::int64_t flush_bytes);

}  // namespace attest::certify
